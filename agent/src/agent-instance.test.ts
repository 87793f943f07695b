import { beforeEach, expect, test } from "vitest";
import { queryEngine } from "@holdfast/testing/engines/fixture-driver.ts";
import { openFixtureMachine } from "@holdfast/testing/machines/fixture-machine.ts";

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

test("starts on an empty machine, stops and starts again", async () => {
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

test("applies new settings without a restart, and restarts on request", async () => {
  await converge();
  const [before] = enginePids();
  await converge({ generation: 2n, parameters: { color: "red" } });
  await observed(({ effectiveParameters }) => effectiveParameters["color"] === "red");
  expect(enginePids()).toEqual([before]);
  await converge({ generation: 2n, parameters: { color: "red" }, restartCount: 1n });
  await observed(({ restartCount, state }) => restartCount === 1n && state === "running");
  expect(enginePids()).not.toEqual([before]);
  const [after] = enginePids();
  await converge({ generation: 3n, parameters: { color: "red" } });
  expect(enginePids()).toEqual([after]);
});

test("applies parameters that the driver writes into no file", async () => {
  await converge();
  const [before] = enginePids();
  const storedColor = async () =>
    (await queryEngine({ spec: specOf() }, "read", AbortSignal.timeout(60_000))).parameters["stored_color"];
  for (const [generation, stored_color] of [
    [2n, "red"],
    [3n, "blue"],
  ] as const) {
    expect((await converge({ generation, parameters: { stored_color } })).failure).toBeUndefined();
    expect(await storedColor()).toBe(stored_color);
  }
  await converge({ generation: 4n });
  expect(await storedColor()).toBeUndefined();
  expect(enginePids()).toEqual([before]);
});

test("reports settings only with the engine's own response to them", async () => {
  await converge();
  await converge({ generation: 2n, parameters: { slow_answer_ms: "1000" } });
  // An observation with its old settings, whose response arrives last.
  const logged = (message: string) => log().split(message).length - 1;
  await expect.poll(() => logged("delays write")).toBeGreaterThan(0);
  await converge({ generation: 3n, parameters: { at_start: "2" } });
  await observed(({ generation }) => generation === 3n);
  await expect.poll(() => logged("responds late to write")).toBe(logged("delays write"));
  // The next observation arrives after the late response.
  await converge({ generation: 4n, parameters: { at_start: "2" } });
  await observed(({ generation }) => generation === 4n);
  const reported = controller.observations.filter(({ generation }) => generation >= 3n);
  for (const { pendingRestart, effectiveParameters } of reported) {
    expect([pendingRestart, effectiveParameters]).toEqual([["at_start"], {}]);
  }
});

test("rolls back a parameter that prevents a start, with the engine's message", async () => {
  await converge({ parameters: { color: "red" } });
  const change = { generation: 2n, parameters: { color: "blue", broken: "yes" }, restartCount: 1n };
  await converge(change);
  const rolledBack = await observed(
    ({ state, rejectedParameters }) => state === "running" && "broken" in rejectedParameters,
  );
  expect(rolledBack).toMatchObject({
    generation: 2n,
    rejectedParameters: { broken: expect.stringContaining("cannot be yes") },
  });
  const { parameters } = await queryEngine({ spec: specOf() }, "read", AbortSignal.timeout(60_000));
  expect(parameters).toEqual({ color: "blue" });
  await converge({ ...change, generation: 3n, parameters: { color: "blue" } });
  const applied = await observed(({ state, generation }) => state === "running" && generation === 3n);
  expect(applied.rejectedParameters).toEqual({});
});

test("starts an engine that was killed during its start again with the same parameters", async () => {
  await converge({ parameters: { color: "red" } });
  const [before] = enginePids();
  const change = { generation: 2n, parameters: { color: "blue", slow_start_ms: "2000" }, restartCount: 1n };
  const restarted = converge(change);
  const isNew = (pid: number | undefined) => pid !== undefined && pid !== before;
  await expect.poll(() => isNew(enginePids()[0])).toBe(true);
  process.kill(enginePids()[0] as number, "SIGKILL");
  expect((await restarted).failure).toBeUndefined();
  const running = await observed(({ state, generation }) => state === "running" && generation === 2n);
  expect(running.rejectedParameters).toEqual({});
});

test("restarts a crashed engine, also without a controller", async () => {
  await converge();
  await observed(({ state }) => state === "running");
  const [before] = enginePids();
  const reportedBefore = controller.observations.length;
  process.kill(before as number, "SIGKILL");
  await expect.poll(() => enginePids().length === 1 && enginePids()[0] !== before).toBe(true);
  const starting = () => controller.observations.slice(reportedBefore).filter(({ state }) => state !== "running");
  await expect.poll(() => starting().length > 0 && lastObservation()?.state === "running").toBe(true);
  // States of one start can share a report, so each of them has the reason.
  expect(new Set(starting().map(({ reason }) => reason))).toEqual(new Set(["The engine ended and is started again."]));
});

test("does not interrupt a slow start, except for a stop", async () => {
  const slow = converge({ parameters: { slow_start_ms: "60000" } });
  await observed(({ state }) => state === "starting");
  const stopped = await converge({ generation: 2n, running: false });
  expect(stopped.failure).toBeUndefined();
  expect((await slow).failure?.code).toBe("superseded");
  await observed(({ state }) => state === "stopped");
});

test("reports why it cannot converge", async () => {
  const message = "This machine's image has no fixture 9 that runs: Nothing is installed at /fixture/9.";
  expect((await converge({ version: "9" })).failure?.message).toBe(message);
  await observed(({ state, reason }) => state === "failed" && reason === message);
});

test("never reports an engine as running before the upgrade of its data is finished", async () => {
  for (const generation of [1n, 2n])
    expect((await converge({ generation, parameters: { unfinished: "yes" } })).failure?.message).toBe(
      "the upgrade is not finished",
    );
  expect(controller.observations.map(({ state }) => state)).not.toContain("running");
  expect((await converge({ generation: 3n })).failure).toBeUndefined();
  await observed(({ state }) => state === "running");
});

test("reports an engine that accepts no write after two failed probes", async () => {
  await converge();
  await converge({ generation: 2n, parameters: { deaf: "yes" } });
  const unhealthy = await observed(({ checks }) =>
    checks.some(({ name, status }) => name === "liveness" && status === "unhealthy"),
  );
  expect(unhealthy.state).toBe("running");
});

test("survives kill -9 of the agent: the engine runs on and is adopted, not started twice", async () => {
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

test("ends with its keeper, and recovers from disk", async () => {
  await converge();
  keeper().kill("SIGKILL");
  await expect.poll(() => enginePids().length + agentPids().length).toBe(0);
  const { bootId } = controller.hellos.at(-1) ?? {};
  controller.observations.length = 0;
  startKeeper();
  await expect.poll(() => controller.hellos.at(-1)?.bootId !== bootId).toBe(true);
  await observed(({ state }) => state === "running");
});

test("shuts down cleanly when the keeper is stopped", async () => {
  await converge();
  keeper().kill("SIGTERM");
  await expect.poll(() => keeper().exitCode).toBe(0);
  expect(log()).toContain("shutting down");
});
