import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { KeyJson } from "./key.ts";

/** A process of `s3-client.py` that runs one scenario after the other: its modules take a second to load. */
export interface S3Session {
  /** Resolves with the result of the scenario; rejects with its error. */
  run<T>(key: KeyJson, scenario: string): Promise<T>;
  close(): void;
}

interface Waiting {
  resolve(line: string): void;
  reject(error: Error): void;
}

/** `start` is called at the first scenario. */
export function createS3Session(start: () => ChildProcess): S3Session {
  let child: ChildProcess | undefined;
  const waiting: Waiting[] = [];

  function open(): ChildProcess {
    const started = start();
    if (started.stdout !== null)
      createInterface({ input: started.stdout }).on("line", (line) => waiting.shift()?.resolve(line));
    started.once("exit", (code) => {
      child = undefined;
      for (const { reject } of waiting.splice(0)) reject(new Error(`the S3 client ended with ${code}`));
    });
    return started;
  }

  return {
    async run<T>({ access_key_id: id, secret_access_key: secret }: KeyJson, scenario: string) {
      child ??= open();
      const request = { scenario, id, secret };
      const line = await new Promise<string>((resolve, reject) => {
        waiting.push({ resolve, reject });
        child?.stdin?.write(`${JSON.stringify(request)}\n`);
      });
      const answer = JSON.parse(line) as { readonly result: T } | { readonly error: string };
      if ("error" in answer) throw new Error(`${scenario}: ${answer.error}`);
      return answer.result;
    },
    close: () => child?.stdin?.end(),
  };
}
