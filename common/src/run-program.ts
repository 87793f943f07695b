import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runs a program to its end without a shell. Rejects with its output if it fails. */
export const runProgram = promisify(execFile);
