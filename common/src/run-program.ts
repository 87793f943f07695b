import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runs a program, without a shell, to its end; rejects with its output when it fails. */
export const runProgram = promisify(execFile);
