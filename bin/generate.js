// `npm run generate`: prints again all that is generated from the protos and from tables in the code.
import { spawnSync } from "node:child_process";
import { checkout, setUp } from "./set-up.js";

const { env } = await setUp();
const commands = [
  ["buf", "generate"],
  ["node", "gateway/src/openapi/write-proto-comments.ts"],
  ["node", "bin/docs/print.ts"],
];
for (const [command, ...args] of commands) {
  const { status, error } = spawnSync(command, args, { cwd: checkout, env, stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
