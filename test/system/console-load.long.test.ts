import type { Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createConsoleUnderTest, workWaitMs } from "./console/console-under-test.ts";

/** The limit of a test: more than its waits together, each of which fails with what it waited for. */
const longMs = 600_000;
const services = 10_000;
const pageSize = 50;
/** An hour of 50 events a second, in streams that end after 6,000 events each. */
const events = 180_000;
const eventsOfStream = 6_000;

interface Heap {
  readonly usedSize: number;
}

describe("the console under load", { timeout: longMs }, () => {
  const fixture = createConsoleUnderTest();
  let service: ServiceJson;
  beforeAll(async () => {
    await fixture.start();
    ({ service } = await createServices(fixture.platform).createRunning("orders", { database_type: "valkey" }));
  }, longMs);
  afterAll(fixture.remove, longMs);

  /** Answers the list with copies of the real service, as many as an installation has at most. */
  async function serveManyServices(page: Page): Promise<string[]> {
    const requests: string[] = [];
    await page.route("**/managed-services?*", async (route: Route) => {
      const { searchParams } = new URL(route.request().url());
      const first = Number(searchParams.get("cursor") ?? 0);
      requests.push(String(first));
      const entries = Array.from({ length: Math.min(pageSize, services - first) }, (_, index) => ({
        ...service,
        id: `${service.id.slice(0, -5)}${String(first + index).padStart(5, "0")}`,
        name: `service-${first + index}`,
      }));
      const next = first + pageSize < services ? String(first + pageSize) : null;
      await route.fulfill({ json: { services: entries, next_cursor: next } });
    });
    return requests;
  }

  it("shows one page of 10,000 services", async () => {
    const page = await fixture.openSignedIn();
    const requests = await serveManyServices(page);
    await page.goto(`${fixture.platform.admin.base_url}/console/services`);
    await page.getByRole("link", { name: "service-49", exact: true }).waitFor();
    expect(new Set(requests)).toEqual(new Set(["0"]));
    expect(await page.evaluate("document.querySelectorAll('*').length")).toBeLessThanOrEqual(1_500);
    await page.getByRole("link", { name: "Next page" }).click();
    await page.getByRole("link", { name: "service-99", exact: true }).waitFor();
    expect(new Set(requests)).toEqual(new Set(["0", "50"]));
    expect(fixture.faults).toEqual([]);
  });

  it("retains no memory and few requests in an hour of events", async () => {
    const page = await fixture.openSignedIn();
    const requests = await serveManyServices(page);
    let sent = 0;
    const data = { service_id: service.id, service_name: "orders", database_type: "valkey", status: "Running" };
    await page.route("**/events?*follow=true*", async (route: Route) => {
      // The last stream stays open without events.
      if (sent >= events) return;
      const timestamp = new Date().toISOString();
      const lines = Array.from({ length: eventsOfStream }, () => {
        sent += 1;
        const event = { id: `${sent}`, event_type: "service.running", timestamp, data };
        return `id: ${sent}\ndata: ${JSON.stringify(event)}\n\n`;
      });
      await route.fulfill({ contentType: "text/event-stream", body: lines.join("") });
    });
    const session = await page.context().newCDPSession(page);
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return ((await session.send("Runtime.getHeapUsage")) as Heap).usedSize;
    };
    await page.goto(`${fixture.platform.admin.base_url}/console/services`);
    await page.getByRole("link", { name: "service-49", exact: true }).waitFor();
    await waitUntil("a sixth of the events is sent", async () => sent >= events / 6, { withinMs: workWaitMs });
    const before = await heap();
    const startedAt = Date.now();
    const requestsBefore = requests.length;
    await waitUntil("all events are sent", async () => sent >= events, { withinMs: workWaitMs });
    expect(requests.length - requestsBefore).toBeLessThanOrEqual((Date.now() - startedAt) / 1_000 + 2);
    expect(await heap()).toBeLessThanOrEqual(before * 1.05 + 1_000_000);
    expect(fixture.faults).toEqual([]);
  });

  it("loads within few bytes and requests, and is complete on a slow network", async () => {
    const page = await fixture.openSignedIn();
    await page.getByRole("heading", { name: "Services", level: 1 }).waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Network.enable");
    await session.send("Network.clearBrowserCache");
    // 1.6 Mbit/s, 150 ms and a slow processor.
    const rate = 200_000;
    await session.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 150,
      downloadThroughput: rate,
      uploadThroughput: rate,
    });
    await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    const files = new Set<string>();
    let [bytes, bytesOfFiles] = [0, 0];
    session.on("Network.requestWillBeSent", ({ requestId, request }) => {
      if (request.url.includes("/console/")) files.add(requestId);
    });
    session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
      bytes += encodedDataLength;
      if (files.has(requestId)) bytesOfFiles += encodedDataLength;
    });
    let startedAt = Date.now();
    await page.reload();
    await page.getByRole("link", { name: "orders", exact: true }).waitFor();
    console.info(`the list: ${Date.now() - startedAt} ms, ${bytes} bytes, ${bytesOfFiles} of ${files.size} files`);
    expect(files.size).toBeLessThanOrEqual(6);
    expect(bytesOfFiles).toBeLessThanOrEqual(70_000);
    const bytesOfList = bytes;
    bytes = 0;
    startedAt = Date.now();
    await page.goto(`${fixture.platform.admin.base_url}/docs`, { waitUntil: "networkidle" });
    console.info(`the page /docs: ${Date.now() - startedAt} ms, with half a second of rest, ${bytes} bytes`);
    expect(bytesOfList).toBeLessThan(bytes);
    expect(fixture.faults).toEqual([]);
  });

  it("requests no lines while a log is paused, also when its service changes", async () => {
    const page = await fixture.openSignedIn();
    await page.goto(`${fixture.platform.admin.base_url}/console/services/${service.id}/logs`);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Follow" }).waitFor();
    let requests = 0;
    page.on("request", (request) => {
      if (request.url().includes("/logs?")) requests += 1;
    });
    for (const name of ["orders-eu", "orders"]) {
      await fixture.platform.rest.patch(`/managed-services/${service.id}`, { name });
      await page.getByRole("heading", { name, level: 1, exact: true }).waitFor();
    }
    expect(requests).toBe(0);
    await page.getByRole("button", { name: "Follow" }).click();
    await waitUntil("lines are requested again", () => requests > 0);
  });

  it("shows the last state and a notice while the control plane is unreachable, and loads again by itself", async () => {
    const page = await fixture.openSignedIn();
    await page.goto(`${fixture.platform.admin.base_url}/console/services/${service.id}`);
    await page.getByRole("heading", { name: "orders", level: 1 }).waitFor();
    const fail = (route: Route) => route.abort("connectionrefused");
    await page.route("**/managed-services/**", fail);
    await page.getByText("The platform does not respond.").waitFor({ timeout: 60_000 });
    expect(await page.getByRole("heading", { name: "orders", level: 1 }).count()).toBe(1);
    await page.unroute("**/managed-services/**", fail);
    await page.getByText("The platform does not respond.").waitFor({ state: "detached", timeout: 60_000 });
  });
});
