// Drives a server with one of the official TypeScript clients: reads a plan from stdin, prints what came of it.
import { text } from 'node:stream/consumers';

const plan = JSON.parse(await text(process.stdin));
const asked = [];
const answer = (request) => {
  asked.push(request.params.message);
  return plan.answer;
};
const capabilities = plan.answer ? { elicitation: { form: {} } } : {};
const info = { name: 'driver', version: '1' };
let client;
let Stdio;
let Http;
if (plan.client === 'v1') {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  ({ StdioClientTransport: Stdio } = await import('@modelcontextprotocol/sdk/client/stdio.js'));
  ({ StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js'));
  client = new Client(info, { capabilities });
  if (plan.answer) client.setRequestHandler(ElicitRequestSchema, async (request) => answer(request));
} else {
  const v2 = await import('@modelcontextprotocol/client');
  ({ StdioClientTransport: Stdio } = await import('@modelcontextprotocol/client/stdio'));
  Http = v2.StreamableHTTPClientTransport;
  client = new v2.Client(info, { capabilities, versionNegotiation: { mode: plan.mode } });
  if (plan.answer) client.setRequestHandler('elicitation/create', async (request) => answer(request));
}
const transport = plan.url
  ? new Http(new URL(plan.url), { requestInit: { headers: plan.headers } })
  : new Stdio({ command: plan.command[0], args: plan.command.slice(1), env: { ...process.env, ...plan.env } });
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const results = [];
for (const [name, args] of plan.calls) results.push(await client.callTool({ name, arguments: args }));
await client.close();
console.log(JSON.stringify({ tools, results, asked }));
