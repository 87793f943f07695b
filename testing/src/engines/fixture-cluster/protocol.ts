import { request } from "node:http";

/** Commands between the components of the fixture cluster, over their Unix sockets. */
export type Command =
  | { readonly op: "signIn"; readonly username: string; readonly password: string }
  | { readonly op: "get"; readonly username: string; readonly key: string }
  | { readonly op: "set"; readonly username: string; readonly key: string; readonly value: string }
  | { readonly op: "users" }
  | { readonly op: "dump" }
  | { readonly op: "putUser"; readonly username: string; readonly role: string; readonly verifier: string }
  | { readonly op: "dropUser"; readonly username: string }
  | { readonly op: "info" }
  | { readonly op: "reload" }
  | { readonly op: "endSessions"; readonly username: string };

export interface User {
  readonly role: string;
  readonly verifier: string;
}

/** The rendered settings, read by both components. */
export interface Settings {
  readonly address: string;
  readonly port: number;
  readonly version: string;
  readonly allowedCidrs: readonly string[];
  readonly parameters: Readonly<Record<string, string>>;
}

/** Sends a command. Rejects with the message of a refusal, or the error of a failed connection. */
export function send<T>(socketPath: string, command: Command, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, method: "POST", ...(signal && { signal }) }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.once("end", () => {
        const reply = JSON.parse(text) as { ok: T } | { error: string };
        if ("error" in reply) reject(new Error(reply.error));
        else resolve(reply.ok);
      });
    });
    call.once("error", reject);
    call.end(JSON.stringify(command));
  });
}

export function writeLog(level: string, message: string): void {
  process.stdout.write(`${new Date().toISOString()} ${level} ${message}\n`);
}
