import { request } from "node:http";

/** What the parts of the fixture cluster ask of each other, over their Unix sockets. */
export type Order =
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

/** The rendered settings, read by both parts. */
export interface Settings {
  readonly address: string;
  readonly port: number;
  readonly version: string;
  readonly allowedCidrs: readonly string[];
  readonly parameters: Readonly<Record<string, string>>;
}

/** Rejects with the words of a refusal, or with the code of a connection that failed. */
export function ask<T>(socketPath: string, order: Order, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, method: "POST", ...(signal && { signal }) }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.once("end", () => {
        const answer = JSON.parse(text) as { ok: T } | { error: string };
        if ("error" in answer) reject(new Error(answer.error));
        else resolve(answer.ok);
      });
    });
    call.once("error", reject);
    call.end(JSON.stringify(order));
  });
}

export function say(level: string, message: string): void {
  process.stdout.write(`${new Date().toISOString()} ${level} ${message}\n`);
}
