import { spawn } from "node:child_process";
import { ComputeFailure } from "../compute-failure.ts";

/** Applies these lines by nft(8), all or none. Throws ComputeFailure with its error output. */
export function nft(input: string, signal: AbortSignal): Promise<void> {
  return run(["--file", "-"], input, signal);
}

/** Runs a single nft(8) command. */
export function nftCommand(args: readonly string[], signal: AbortSignal): Promise<void> {
  return run(args, "", signal);
}

async function run(args: readonly string[], input: string, signal: AbortSignal): Promise<void> {
  const child = spawn("nft", args, { stdio: ["pipe", "ignore", "pipe"], signal });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-500);
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (status !== 0) throw new ComputeFailure(`The host's packet filter could not be set: ${stderr.trim()}`);
}
