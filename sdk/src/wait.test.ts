import { describe, expect, test } from "vitest";
import { createClient } from "./client.ts";
import { NotFound } from "./errors.ts";
import { OperationFailed, ServiceFailed, WaitTimedOut } from "./wait.ts";

type FakeResponse =
  | { readonly status: string; readonly operation?: object | null; readonly error?: object }
  | number
  | Error;

const stop = { id: "o1", type: "stop", status: "running" };
const summary = { status: "Pending", current_task: "SetupServer", progress_pct: 20, operation_id: "o1" };

/** A client of a service with these responses in order; the last one is repeated. */
function clientOf(responses: readonly FakeResponse[], operation: object = { ...stop, status: "completed" }) {
  const left = [...responses];
  return createClient({
    baseUrl: "https://holdfast.test",
    retries: 0,
    fetch: async (input) => {
      const { pathname } = input as URL;
      if (pathname.endsWith("/task-summary")) return Response.json(summary);
      if (pathname.startsWith("/operations/")) return Response.json(operation);
      const next = left.length > 1 ? left.shift() : left[0];
      if (next instanceof Error) throw next;
      if (typeof next === "number") return Response.json({ code: "c", detail: "why" }, { status: next });
      return Response.json({ id: "s1", operation: null, error: null, ...next });
    },
  });
}

describe("waitFor", () => {
  test("resolves to the service once it has the status and no operation", async () => {
    const reports: unknown[] = [];
    const onProgress = (now: unknown) => reports.push(now);
    const client = clientOf([
      { status: "Pending", operation: stop },
      { status: "Running", operation: stop },
      { status: "Running" },
    ]);
    expect(await client.waitFor("s1", "Running", { onProgress })).toMatchObject({ id: "s1", status: "Running" });
    expect(reports).toEqual([summary]);
    for (const target of ["deleted", "gone"] as const)
      expect(await clientOf([{ status: "Stopped" }, 404]).waitFor("s1", target)).toBeUndefined();
  });

  test("asks for a files service where files services are", async () => {
    const paths: string[] = [];
    const client = createClient({
      baseUrl: "https://holdfast.test",
      fetch: async (input) => {
        paths.push((input as URL).pathname);
        return Response.json({ id: "f1", database_type: "files", status: "Running", operation: null });
      },
    });
    const media = await client.files.get("f1");
    expect(await client.waitFor(media, "Running")).toMatchObject({ status: "Running" });
    expect(new Set(paths)).toEqual(new Set(["/files-services/f1"]));
  });

  test("an outage of the API is reported once, and progress after it again", async () => {
    const reports: string[] = [];
    const pending = { status: "Pending", operation: stop };
    const client = clientOf([pending, 503, new TypeError("fetch failed"), pending, { status: "Running" }]);
    const onOutage = () => reports.push("outage");
    await client.waitFor("s1", "Running", { onProgress: () => reports.push("progress"), onOutage });
    expect(reports).toEqual(["progress", "outage", "progress"]);
  });

  test("an outage of the API does not end the wait", async () => {
    const client = clientOf([{ status: "Pending" }, new TypeError("cut"), 503, 429, { status: "Running" }]);
    expect(await client.waitFor("s1", "Running")).toMatchObject({ status: "Running" });
    await expect(clientOf([503]).waitFor("s1", "Running")).rejects.toMatchObject({ status: 503 });
    const known = await client.services.get("s1");
    const away = clientOf([503, { status: "Running" }]);
    expect(await away.waitFor(known, "Running")).toMatchObject({ status: "Running" });
  });

  test("rejects when the target is not possible any more", async () => {
    const failed = { status: "Error", error: { code: "c", message: "no disk" } };
    await expect(clientOf([failed]).waitFor("s1", "Running")).rejects.toThrow(ServiceFailed);
    await expect(clientOf([failed]).waitFor("s1", "Running")).rejects.toThrow("no disk");
    expect(await clientOf([failed]).waitFor("s1", "Error")).toMatchObject(failed);
    await expect(clientOf([404]).waitFor("s1", "Running")).rejects.toBeInstanceOf(NotFound);
    const error = { code: "c", message: "it did not stop" };
    const client = clientOf([{ status: "Running", operation: stop }, { status: "Running" }], {
      ...stop,
      status: "failed",
      error,
    });
    await expect(client.waitFor("s1", "Stopped")).rejects.toThrow(OperationFailed);
    const known = await client.services.get("s1");
    await expect(client.waitFor({ ...known, operation: { ...stop } as never }, "Stopped")).rejects.toThrow(
      "it did not stop",
    );
  });

  test("a deployment's wait begins during an outage, and ends at its timeout during one", async () => {
    const deployments = (responses: (string | Error)[], outageMs = 0) =>
      createClient({
        baseUrl: "https://holdfast.test",
        retries: 1,
        outageMs,
        fetch: async () => {
          const next = responses.length > 1 ? responses.shift() : responses[0];
          if (next instanceof Error) throw next;
          return Response.json({ id: "d1", status: next, resources: [] });
        },
      }).projects;
    const cut = new TypeError("cut");
    const restarted = deployments([cut, cut, cut, "Completed"]);
    expect(await restarted.waitForDeployment("shop", "d1")).toMatchObject({ status: "Completed" });
    const down = deployments(["Provisioning", cut], 600_000);
    await expect(down.waitForDeployment("shop", "d1", { timeoutMs: 150 })).rejects.toBeInstanceOf(WaitTimedOut);
  }, 15_000);

  test("rejects after its timeout, and with its signal's reason", async () => {
    const client = clientOf([{ status: "Pending" }]);
    await expect(client.waitFor("s1", "Running", { timeoutMs: 0 })).rejects.toBeInstanceOf(WaitTimedOut);
    const reason = new Error("enough");
    await expect(client.waitFor("s1", "Running", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

describe("waitForOperation", () => {
  const reset = { ...stop, id: "o1", type: "reset_password", step: "WaitForEngine", progress_pct: 0, error: null };

  test("resolves to the completed operation, and reports each step", async () => {
    const left = [{ ...reset, status: "pending", step: null }, reset, reset, { ...reset, status: "completed" }];
    const client = createClient({
      baseUrl: "https://holdfast.test",
      fetch: async () => Response.json(left.length > 1 ? left.shift() : left[0]),
    });
    const reports: unknown[] = [];
    const over = await client.waitForOperation("o1", { onProgress: ({ step }) => reports.push(step) });
    expect(over.status).toBe("completed");
    expect(reports).toEqual([null, "WaitForEngine"]);
  });

  test("rejects when the operation fails, when it is unknown, and after its timeout", async () => {
    const error = { code: "engine_busy", message: "others hold it" };
    const failed = clientOf([], { ...reset, status: "failed", error }).waitForOperation("o1");
    await expect(failed).rejects.toThrow(OperationFailed);
    await expect(failed).rejects.toThrow("others hold it");
    const unknown = createClient({
      baseUrl: "https://holdfast.test",
      fetch: async () => Response.json({ code: "operation_not_found", detail: "why" }, { status: 404 }),
    });
    await expect(unknown.waitForOperation("o2")).rejects.toBeInstanceOf(NotFound);
    const late = clientOf([], reset).waitForOperation("o1", { timeoutMs: 0 });
    await expect(late).rejects.toBeInstanceOf(WaitTimedOut);
  });
});
