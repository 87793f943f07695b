import type { PipeProgram } from "../os/pipe-program.ts";
import type { RunProgram } from "../os/program.ts";

/** Effects that a driver needs; tests run the programs inside an image. */
export interface EngineDeps {
  readonly run: RunProgram;
  /** Runs a program as the engine's user, who owns its data. */
  readonly runAsEngine: RunProgram;
  /** Runs a program as this process's own user, with streams; for components, which run as the engine's user. */
  readonly pipe: PipeProgram;
  randomBytes(size: number): Buffer;
}
