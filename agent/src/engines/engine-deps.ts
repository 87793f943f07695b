import type { RunProgram } from "../host/run-program.ts";

/** What a driver needs from outside; tests run programs inside an image. */
export interface EngineDeps {
  readonly run: RunProgram;
  /** As the user that the engine runs as, who owns its data. */
  readonly runAsEngine: RunProgram;
  randomBytes(size: number): Buffer;
}
