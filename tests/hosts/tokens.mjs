// Reads a JSON array of texts from stdin, and prints how many tokens each has in o200k_base.
import { encode } from "gpt-tokenizer/encoding/o200k_base"

let text = ""
for await (const piece of process.stdin.setEncoding("utf8")) text += piece
// A text that looks like a special token is ordinary text here.
console.log(JSON.stringify(JSON.parse(text).map((each) => encode(each, { disallowedSpecial: new Set() }).length)))
