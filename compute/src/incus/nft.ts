import { spawn } from "node:child_process";
import { ComputeFailure } from "../compute-failure.ts";

/** Has nft(8) take these lines, all of them or none. Throws ComputeFailure with what it says. */
export function nft(input: string, signal: AbortSignal): Promise<void> {
  return run(["--file", "-"], input, signal);
}

/** The same for one command. */
export function nftCommand(args: readonly string[], signal: AbortSignal): Promise<void> {
  return run(args, "", signal);
}

async function run(args: readonly string[], input: string, signal: AbortSignal): Promise<void> {
  const child = spawn("nft", args, { stdio: ["pipe", "ignore", "pipe"], signal });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-500);
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (status !== 0) throw new ComputeFailure(`The host's rules could not be set: ${said.trim()}`);
}
