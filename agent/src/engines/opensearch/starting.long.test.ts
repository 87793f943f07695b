import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { openClient, opensearchVerifier } from "@holdfast/testing/engines/opensearch-clients.ts";
import { createOpensearchMachine } from "@holdfast/testing/engines/opensearch-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendCommand } from "../front/front-commands.ts";
import { frontOf } from "./front.ts";

const skip = await requireRecipes(import.meta.filename, "opensearch");
const timeoutMs = 900_000;
const refused = 'refused 503 after 2: {"error":{"type":"unavailable_exception"';

describe.skipIf(skip !== undefined)("clients of an opensearch that starts", { timeout: timeoutMs }, () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    const user = create(EngineUserSchema, {
      username: "app_user",
      role: "admin",
      verifier: opensearchVerifier("secret"),
    });
    machine = await createOpensearchMachine("127.9.51.41", { users: [user] });
    await machine.bootstrap();
    await machine.writeConfig();
  });
  afterAll(() => machine?.remove());

  /** The response that one client gets on a new connection. */
  async function outcome(): Promise<string> {
    const client = openClient(machine, { user: "app_user", password: "secret" });
    try {
      const { status, headers, body } = await client.send("GET", "/_cluster/health");
      if (status === 200) return "served";
      return `refused ${status} after ${String(headers["retry-after"])}: ${JSON.stringify(body)}`;
    } catch (error) {
      return error instanceof Error && "code" in error ? String(error.code) : String(error);
    } finally {
      await client.close();
    }
  }

  /** The different outcomes in their order, until one is served. */
  async function outcomesUntilServed(): Promise<string[]> {
    const outcomes: string[] = [];
    await waitUntil(
      "a client is served",
      async () => {
        const found = await outcome();
        if (outcomes.at(-1) !== found) outcomes.push(found);
        return found === "served";
      },
      { withinMs: timeoutMs, everyMs: 20, describe: () => outcomes.join("\n") },
    );
    return outcomes;
  }

  async function start(): Promise<string[]> {
    await machine.start();
    const [outcomes] = await Promise.all([
      outcomesUntilServed(),
      machine.driver.ready(machine.instance, AbortSignal.timeout(timeoutMs)),
    ]);
    return outcomes.filter((each) => each !== "ECONNREFUSED");
  }

  it("are refused with 503 and a time to retry until their users exist, and then served", async () => {
    expect(await start()).toEqual([expect.stringContaining(refused), "served"]);
  });

  it("are refused in the same way after a crash", async () => {
    await machine.stop("SIGKILL");
    expect(await start()).toEqual([expect.stringContaining(refused), "served"]);
  });

  it("are refused while the engine hangs, and served when it continues", async () => {
    const resume = machine.pause();
    try {
      await waitUntil("a client is refused", async () => (await outcome()).startsWith(refused), {
        withinMs: timeoutMs,
      });
    } finally {
      resume();
    }
    await outcomesUntilServed();
  });

  it("are served again by a front that was restarted, once the agent observes the engine", async () => {
    await sendCommand(frontOf(machine.instance), "set server engine/engine state maint", machine.signal);
    expect(await outcome()).toContain(refused);
    await machine.driver.observe(machine.instance, machine.signal);
    expect(await outcomesUntilServed()).toEqual(["served"]);
  });
});
