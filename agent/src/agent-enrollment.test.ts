import { existsSync, readFileSync, statSync } from "node:fs";
import type { Check } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { queryEngine } from "@holdfast/testing/engines/fixture-driver.ts";
import { openFixtureMachine } from "@holdfast/testing/machines/fixture-machine.ts";

const {
  controller,
  start,
  startKeeper,
  keeper,
  writeEnrollment,
  file,
  specOf,
  converge,
  agentPids,
  enginePids,
  lastObservation,
  observed,
  log,
} = await openFixtureMachine();

test("uses the token once and stores key and certificate privately", async () => {
  await start();
  expect(controller.enrollments).toEqual(["m-1"]);
  expect(statSync(file("identity.json")).mode & 0o777).toBe(0o600);
  controller.cut();
  await expect.poll(() => controller.hellos.length).toBeGreaterThan(1);
  expect(controller.enrollments).toEqual(["m-1"]);
  expect(controller.hellos[0]?.bootId).toBe(controller.hellos[1]?.bootId);
});

test("moves to another controller on a redirect, and ends the old session only then", async () => {
  await start();
  let fewest = controller.openSessions;
  const watching = setInterval(() => (fewest = Math.min(fewest, controller.openSessions)), 1);
  controller.send({ case: "redirect", value: { controller: "127.0.0.1:1" } });
  await expect.poll(() => log()).toContain("no session");
  controller.send({ case: "redirect", value: { controller: controller.address } });
  await expect.poll(() => controller.hellos.length).toBeGreaterThanOrEqual(2);
  clearInterval(watching);
  expect(fewest).toBe(1);
  await expect.poll(() => controller.openSessions).toBe(1);
});

test("an enrollment whose response was lost with the agent is repeated with the same key", async () => {
  controller.dropsEnrollmentResponses = true;
  writeEnrollment();
  startKeeper();
  // The agent retries, possibly more than once between two polls.
  await expect.poll(() => controller.enrollments.length).toBeGreaterThan(0);
  for (const pid of agentPids()) process.kill(pid, "SIGKILL");
  controller.dropsEnrollmentResponses = false;
  await expect.poll(() => controller.hellos.length).toBeGreaterThan(0);
  expect(controller.tokens.size).toBe(0);
  await expect.poll(() => existsSync(file("enrolling.json"))).toBe(false);
});

test("sends the token to no controller of another authority", async () => {
  const token = writeEnrollment(undefined, "00".repeat(32));
  startKeeper();
  await expect.poll(() => log()).toContain("lacks the authority of the enrollment");
  expect(controller.tokens.has(token)).toBe(true);
  expect(controller.enrollments).toEqual([]);
});

test("uses a new enrollment, and the previous certificate if that is refused", async () => {
  await start();
  writeEnrollment();
  controller.cut();
  await expect.poll(() => controller.enrollments.length).toBe(2);
  const spent = writeEnrollment();
  controller.tokens.delete(spent);
  const { length } = controller.hellos;
  controller.cut();
  await expect.poll(() => controller.hellos.length).toBeGreaterThan(length);
  expect(controller.enrollments.length).toBe(2);
});

test("a machine that was off longer than its certificates' lifetime starts with its engine", async () => {
  controller.lifetimes = { identityMs: 5_000, serverMs: 5_000 };
  await start();
  await converge();
  keeper().kill("SIGKILL");
  await expect.poll(() => [...agentPids(), ...enginePids()]).toEqual([]);
  const { notAfter } = JSON.parse(readFileSync(file("identity.json"), "utf8"));
  await expect.poll(() => Date.now() > notAfter + 1_000).toBe(true);
  controller.lifetimes = { identityMs: 3_600_000, serverMs: 3_600_000 };
  controller.observations.length = 0;
  writeEnrollment();
  startKeeper();
  const isWell = (check: Check) => check.name === "certificate" && check.status === "healthy";
  await observed(({ state, checks }) => state === "running" && checks.some(isWell));
  expect(controller.enrollments).toEqual(["m-1", "m-1"]);
});

test("renews its certificate repeatedly with a new session each, while the engine runs on", async () => {
  // A third of the lifetime remains at the renewal, also on a busy machine.
  controller.lifetimes = { identityMs: 9_000, serverMs: 9_000 };
  await start();
  await converge();
  const [engine] = enginePids();
  const first = (await queryEngine({ spec: specOf() }, "read", AbortSignal.timeout(60_000))).certificate;
  await expect.poll(() => new Set(controller.serials).size).toBeGreaterThanOrEqual(3);
  await expect.poll(() => controller.renewals.filter((kind) => kind === "server").length).toBeGreaterThanOrEqual(3);
  expect(controller.enrollments).toEqual(["m-1"]);
  expect(enginePids()).toEqual([engine]);
  const now = await queryEngine({ spec: specOf() }, "read", AbortSignal.timeout(60_000));
  expect(now.certificate).not.toBe(first);
  expect(lastObservation()?.state).toBe("running");
});
