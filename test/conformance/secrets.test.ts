import { afterAll } from "vitest";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { secretCases } from "./secrets/secret-cases.ts";

let platform: Platform;

secretCases(async () => {
  platform = await startPlatform();
  const services = createServices(platform);
  const [postgresql, valkey] = await Promise.all([
    services.createRunning("ledger"),
    services.createRunning("cache", { database_type: "valkey" }),
  ]);
  return { platform, services, postgresql, valkey };
});

afterAll(() => platform?.remove());
