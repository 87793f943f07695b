// Runs the installed commands.
import { spawn } from "node:child_process";
import { checkout } from "./set-up.js";

/** `run` returns the output of a command; throws with it when the command fails. */
export function toolsFor(env) {
  return { run: (command, args) => output(command, args, env) };
}

function output(command, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: checkout, env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => (text += chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk) => (text += chunk));
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(text);
      else reject(new Error(text.trim() === "" ? `${command} ended with ${code}` : text.trim()));
    });
  });
}
