import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AgentLink, createAgentLink } from "./agent-link.ts";

let directory: string;
let path: string;
let link: AgentLink;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-link-"));
  path = join(directory, "job.sock");
  link = createAgentLink(path, join(directory, "outcome"));
  await waitUntil("it listens", async () => {
    const socket = connect(path);
    return once(socket, "connect").then(
      () => socket.destroy(),
      () => undefined,
    );
  });
});
afterAll(() => rm(directory, { recursive: true, force: true }));

test("a line that is not a message ends its connection, and the component continues", async () => {
  const lines = inheritedNames.flatMap((word) => [word, `"${word}"`, `{"${word}":1}`, `{"urls":"${word}"}`]);
  for (const line of [...lines, "", "null", "{}", "[", "1"]) {
    const socket = connect(path);
    const ended = once(socket, "close");
    socket.write(`${line}\n`);
    socket.end();
    await ended;
  }
  const agent = connect(path);
  const first = once(createInterface({ input: agent }), "line");
  link.report({ state: "running", backupId: "b", attempt: 1 });
  expect(JSON.parse(String(await first))).toEqual({ report: { state: "running", backupId: "b", attempt: 1 } });
  agent.destroy();
});
