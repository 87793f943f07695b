import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";

export interface RuleJson {
  readonly id: string;
  readonly metric: string;
  readonly state: string;
}

export interface AlertJson {
  readonly id: string;
  readonly rule_id: string;
  readonly state: string;
}

/** One PostgreSQL with alert rules, with a sample each second, and the command line beside its platform. */
export interface AlertsUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  readonly watched: RunningService;
  /** Path of the rules of the service. */
  rulesPath(): string;
  /** The JSON output of a command that must not fail. */
  jsonOf<T>(line: string): Promise<T>;
  /** Events of alerts of the service. */
  eventsOfAlerts(): Promise<{ event_type: string; data: AlertJson }[]>;
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  remove(): Promise<void>;
}

type Started = Pick<AlertsUnderTest, "platform" | "services" | "watched">;

export function createAlertsUnderTest(): AlertsUnderTest {
  let running: Started | undefined;
  let platform: Platform | undefined;
  let shell: CommandLine | undefined;
  const started = () => {
    if (running === undefined) throw new Error("the service was not created");
    return running;
  };
  const fixture: AlertsUnderTest = {
    get platform() {
      return started().platform;
    },
    get services() {
      return started().services;
    },
    get watched() {
      return started().watched;
    },
    rulesPath: () => `/managed-services/${fixture.watched.service.id}/alerts/rules`,
    async jsonOf<T>(line: string) {
      if (shell === undefined) throw new Error("the platform was not started");
      const ran = await shell.runHere(["--output", "json", ...line.split(" ")]);
      expect(ran, line).toMatchObject({ code: 0, stderr: "" });
      return JSON.parse(ran.stdout) as T;
    },
    eventsOfAlerts: () => fixture.jsonOf("alerts events watched"),
    async start(environment = {}) {
      platform = await startPlatform({ environment: { HOLDFAST_SAMPLE_INTERVAL_MS: "1000", ...environment } });
      shell = createCommandLine({});
      symlinkSync(platform.directory, join(shell.home, ".holdfast"));
      const services = createServices(platform);
      const watched = await services.createRunning("watched", { allowed_cidrs: ["127.0.0.0/8"] });
      running = { platform, services, watched };
    },
    async remove() {
      shell?.remove();
      await platform?.remove();
    },
  };
  return fixture;
}
