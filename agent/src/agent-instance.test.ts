import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { ask } from "../../test/support/engines/fixture-driver.ts";
import { openFixtureMachine, taskHeader } from "../../test/support/machines/fixture-machine.ts";

const {
  controller,
  start,
  startKeeper,
  keeper,
  specOf,
  converge,
  enginePids,
  agentPids,
  lastObservation,
  observed,
  log,
} = await openFixtureMachine();

beforeEach(start);

test("goes from nothing to running, stopped and running again", async () => {
  expect((await converge()).output.case).toBe("convergeInstance");
  expect(await observed(({ state }) => state === "running")).toMatchObject({ generation: 1n, serviceId: "s-1" });
  await observed(({ checks }) =>
    ["liveness", "storage", "certificate"].every((name) =>
      checks.some((check) => check.name === name && check.status === "healthy"),
    ),
  );
  expect((await converge({ generation: 2n, running: false })).failure).toBeUndefined();
  expect(lastObservation()?.state).not.toBe("running");
  await observed(({ state, generation }) => state === "stopped" && generation === 2n);
  expect(enginePids()).toEqual([]);
  await converge({ generation: 3n });
  await observed(({ state, generation }) => state === "running" && generation === 3n);
});

test("takes new settings without a restart, and restarts when that is asked for", async () => {
  await converge();
  const [before] = enginePids();
  await converge({ generation: 2n, parameters: { color: "red" } });
  await observed(({ effectiveParameters }) => effectiveParameters["color"] === "red");
  expect(enginePids()).toEqual([before]);
  const result = await controller.perform({
    ...taskHeader,
    generation: 2n,
    input: { case: "restartInstance", value: { nodeId: "n-1", restartCount: 1n } },
  });
  expect(result.output.case).toBe("restartInstance");
  await observed(({ restartCount, state }) => restartCount === 1n && state === "running");
  expect(enginePids()).not.toEqual([before]);
  const [after] = enginePids();
  await converge({ generation: 3n, parameters: { color: "red" } });
  expect(enginePids()).toEqual([after]);
});

test("tells no settings before what the engine says of them, nor what it said before", async () => {
  await converge();
  await converge({ generation: 2n, parameters: { slow_answer_ms: "1000" } });
  // The look that follows has its answer already and comes last.
  const result = await converge({ generation: 3n, parameters: { at_start: "2" } });
  expect(result.output.value).toMatchObject({ pendingRestart: ["at_start"] });
  await observed(({ generation }) => generation === 3n);
  await sleep(1_500);
  const told = controller.observations.filter(({ generation }) => generation === 3n);
  for (const { pendingRestart, effectiveParameters } of told) {
    expect([pendingRestart, effectiveParameters]).toEqual([["at_start"], {}]);
  }
});

test("takes back a parameter that keeps the engine from starting, in the engine's words", async () => {
  await converge({ parameters: { color: "red" } });
  const change = { generation: 2n, parameters: { color: "blue", broken: "yes" }, restartCount: 1n };
  const result = await converge(change);
  expect(result.output.value).toMatchObject({ rejected: { broken: expect.stringContaining("cannot be yes") } });
  const held = await observed(({ state, rejectedParameters }) => state === "running" && "broken" in rejectedParameters);
  expect(held.generation).toBe(2n);
  const { parameters } = await ask({ spec: specOf() }, "read", AbortSignal.timeout(60_000));
  expect(parameters).toEqual({ color: "blue" });
  expect((await converge({ ...change, generation: 3n, parameters: { color: "blue" } })).output.value).toMatchObject({
    rejected: {},
  });
});

test("starts an engine again that crashed, without a controller too", async () => {
  await converge();
  const [before] = enginePids();
  process.kill(before as number, "SIGKILL");
  await expect.poll(() => enginePids().length === 1 && enginePids()[0] !== before).toBe(true);
  await observed(({ state, reason }) => state === "starting" && reason.includes("started again"));
});

test("leaves an engine that takes long to start alone, and a stop in the meantime wins", async () => {
  const slow = converge({ parameters: { slow_start_ms: "60000" } });
  await observed(({ state }) => state === "starting");
  const stopped = await converge({ generation: 2n, running: false });
  expect(stopped.failure).toBeUndefined();
  expect((await slow).failure?.code).toBe("superseded");
  await observed(({ state }) => state === "stopped");
});

test("says in words why it cannot be", async () => {
  const words = "This machine's image has no fixture 9 that runs: Nothing is installed at /fixture/9.";
  expect((await converge({ version: "9" })).failure?.message).toBe(words);
  await observed(({ state, reason }) => state === "failed" && reason === words);
});

test("calls no engine running whose upgraded data are not finished, however often it is asked", async () => {
  for (const generation of [1n, 2n])
    expect((await converge({ generation, parameters: { unfinished: "yes" } })).failure?.message).toBe(
      "the upgrade is not finished",
    );
  expect(controller.observations.map(({ state }) => state)).not.toContain("running");
  expect((await converge({ generation: 3n })).failure).toBeUndefined();
  await observed(({ state }) => state === "running");
});

test("tells of an engine that takes no write after two misses", async () => {
  await converge();
  await converge({ generation: 2n, parameters: { deaf: "yes" } });
  const unhealthy = await observed(({ checks }) =>
    checks.some(({ name, status }) => name === "liveness" && status === "unhealthy"),
  );
  expect(unhealthy.state).toBe("running");
});

test("survives kill -9 of the agent: the engine stays, is adopted and not started twice", async () => {
  await converge();
  const [engine] = enginePids();
  const { sessionId } = controller.hellos.at(-1) ?? {};
  for (const pid of agentPids()) process.kill(pid, "SIGKILL");
  await expect.poll(() => controller.hellos.at(-1)?.sessionId !== sessionId).toBe(true);
  controller.observations.length = 0;
  await observed(({ state }) => state === "running");
  expect(enginePids()).toEqual([engine]);
  expect((await converge({ generation: 2n })).failure).toBeUndefined();
  expect(enginePids()).toEqual([engine]);
});

test("is gone as a whole with its keeper, and comes back from what is on disk", async () => {
  await converge();
  keeper().kill("SIGKILL");
  await expect.poll(() => enginePids().length + agentPids().length).toBe(0);
  const { bootId } = controller.hellos.at(-1) ?? {};
  controller.observations.length = 0;
  startKeeper();
  await expect.poll(() => controller.hellos.at(-1)?.bootId !== bootId).toBe(true);
  await observed(({ state }) => state === "running");
});

test("stops in order when the keeper is told to end", async () => {
  await converge();
  keeper().kill("SIGTERM");
  await expect.poll(() => keeper().exitCode).toBe(0);
  expect(log()).toContain("shutting down");
});
