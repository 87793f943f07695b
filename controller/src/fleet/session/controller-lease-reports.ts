import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { ControllerCalls } from "./controller-calls.ts";
import type { ControllerLeaseReport } from "./primary-leases.ts";

/** Reports of other controllers on primaries whose streams they have. They are polled every second. */
export interface ControllerLeaseReports {
  /**
   * The controller's last report on the machine; undefined while the machine's lease requests are on time, and while
   * the controller does not respond. Ages are as of the controller's response: the machine may have sent a request
   * since.
   */
  report(controllerId: string, machineId: string): ControllerLeaseReport | undefined;
  close(): void;
}

export interface ControllerLeaseReportsDeps {
  readonly controllerRegistry: Pick<ControllerRegistry, "id" | "controllers">;
  readonly controllerCalls: Pick<ControllerCalls, "listSilent">;
}

const pollIntervalMs = 1_000;

export function createControllerLeaseReports({
  controllerRegistry,
  controllerCalls,
}: ControllerLeaseReportsDeps): ControllerLeaseReports {
  const reports = new Map<string, ReadonlyMap<string, ControllerLeaseReport>>();
  const pending = new Set<string>();

  function poll(controllerId: string, address: string): void {
    pending.add(controllerId);
    controllerCalls
      .listSilent(address, pollIntervalMs)
      .then((silent) => reports.set(controllerId, silent))
      // The previous report may be outdated.
      .catch(() => reports.delete(controllerId))
      .finally(() => pending.delete(controllerId));
  }

  const timer = setInterval(() => {
    const others = controllerRegistry
      .controllers()
      .filter(({ id, address }) => id !== controllerRegistry.id && address !== "");
    for (const id of reports.keys()) if (!others.some((each) => each.id === id)) reports.delete(id);
    for (const { id, address } of others) if (!pending.has(id)) poll(id, address);
  }, pollIntervalMs).unref();

  return {
    report: (controllerId, machineId) => reports.get(controllerId)?.get(machineId),
    close: () => clearInterval(timer),
  };
}
