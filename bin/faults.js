// `npm run faults -- [--kills N] [--seed N]`: random kills for as long as one likes.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

try {
  const { node, env } = await setUp();
  const program = join(checkout, "test", "faults", "run.ts");
  const child = spawn(node, [program, ...process.argv.slice(2)], { env, cwd: checkout, stdio: "inherit" });
  child.once("exit", (code) => {
    process.exitCode = code ?? 1;
  });
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  process.exitCode = 1;
}
