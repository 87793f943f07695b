import { expect, it } from "vitest";
import { createWelcomeTimeout } from "./welcome-timeout.ts";

it("doubles with each failed attempt up to a limit, and resets with a welcome", () => {
  const welcomeTimeout = createWelcomeTimeout();
  const waits = Array.from({ length: 5 }, () => {
    const { ms } = welcomeTimeout;
    welcomeTimeout.failed();
    return ms;
  });
  expect(waits).toEqual([5_000, 10_000, 20_000, 40_000, 40_000]);
  welcomeTimeout.welcomed();
  expect(welcomeTimeout.ms).toBe(5_000);
});

it.each([
  { fleet: "a few agents", fleetReturnMs: 30, first: 5_030, second: 10_060 },
  { fleet: "1,000 agents", fleetReturnMs: 10_000, first: 15_000, second: 30_000 },
  { fleet: "5,000 agents", fleetReturnMs: 50_000, first: 55_000, second: 55_000 },
  { fleet: "more agents than a controller can have", fleetReturnMs: 2 ** 32 - 1, first: 65_000, second: 65_000 },
])("waits long enough among $fleet that lost their controller", ({ fleetReturnMs, first, second }) => {
  const welcomeTimeout = createWelcomeTimeout();
  welcomeTimeout.lost(fleetReturnMs);
  expect(welcomeTimeout.ms).toBe(first);
  welcomeTimeout.failed();
  expect(welcomeTimeout.ms).toBe(second);
});
