import type { PipeProgram } from "../os/pipe-program.ts";
import type { RunProgram } from "../os/program.ts";

/** What a driver needs from outside; tests run programs inside an image. */
export interface EngineDeps {
  readonly run: RunProgram;
  /** As the user that the engine runs as, who owns its data. */
  readonly runAsEngine: RunProgram;
  /** As this process's own user: for components, which are the engine's. */
  readonly pipe: PipeProgram;
  randomBytes(size: number): Buffer;
}
