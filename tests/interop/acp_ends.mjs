// Both ends of the Agent Client Protocol, by the official SDK.
//
// `node acp_ends.mjs agent VERSION`: an agent. A prompt is a JSON list of requests to the client, which it sends
// one after the other; its message has the answers.
// `node acp_ends.mjs client VERSION CWD PROMPT WORDS…`: a client that starts WORDS as its agent, sends one prompt,
// allows once what it is asked, and prints what it was asked and the agent's message.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as first from "@agentclientprotocol/sdk";
import * as second from "@agentclientprotocol/sdk/experimental/v2";

const [side, version, ...rest] = process.argv.slice(2);
const acp = version === "1" ? first : second;
const { methods } = acp;
const own = { name: "interop", version: "1" };
const stream = (sink, source) => acp.ndJsonStream(Writable.toWeb(sink), Readable.toWeb(source));

async function agent() {
  const app = acp
    .agent({ name: "interop" })
    .onRequest(methods.agent.initialize, ({ params }) =>
      version === "1"
        ? { protocolVersion: 1, agentCapabilities: { _meta: { heard: params.clientCapabilities } } }
        : { protocolVersion: 2, info: own, capabilities: {} },
    )
    .onRequest(methods.agent.session.new, () => ({ sessionId: "of the SDK" }))
    .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
      const answers = [];
      for (const { method, ...more } of JSON.parse(params.prompt[0].text)) {
        try {
          answers.push(await client.request(method, { sessionId: params.sessionId, ...more }));
        } catch (error) {
          answers.push({ error: { code: error.code, message: error.message, data: error.data } });
        }
      }
      const content = { type: "text", text: JSON.stringify(answers) };
      const update = { sessionUpdate: "agent_message_chunk", messageId: "m", content };
      await client.notify(methods.client.session.update, { sessionId: params.sessionId, update });
      return version === "1" ? { stopReason: "end_turn" } : { messageId: "m" };
    });
  await app.connect(stream(process.stdout, process.stdin)).closed;
}

async function client([cwd, prompt, command, ...words]) {
  const started = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
  const seen = { asked: [] };
  let told;
  const message = new Promise((resolve) => (told = resolve));
  const app = acp
    .client({ name: "interop" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      seen.asked.push(params);
      const optionId = params.options.find((each) => each.kind === "allow_once").optionId;
      return { outcome: { outcome: "selected", optionId } };
    })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") told(JSON.parse(update.content.text));
    });
  if (version === "1")
    app.onRequest(methods.client.fs.readTextFile, ({ params }) => {
      seen.asked.push(params);
      return { content: readFileSync(params.path, "utf8") };
    });
  await app.connectWith(stream(started.stdin, started.stdout), async (connected) => {
    const given =
      version === "1"
        ? { protocolVersion: 1, clientCapabilities: { fs: { readTextFile: true, writeTextFile: false } } }
        : { protocolVersion: 2, info: own, capabilities: {} };
    seen.initialized = await connected.request(methods.agent.initialize, given);
    const { sessionId } = await connected.request(methods.agent.session.new, { cwd, mcpServers: [] });
    await connected.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
    seen.answers = await message;
  });
  console.log(JSON.stringify(seen));
  started.stdin.end();
}

await (side === "agent" ? agent() : client(rest));
