import { isIPv4 } from "node:net";
import type { AppEndpoint, AppSpec, Release, WorkloadSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../../task-failed.ts";
import { relayAddressesMax, relaysMax } from "./app-relay.ts";

const idPattern = /^[a-z0-9][a-z0-9-]{0,39}$/;
const imagePattern = /^[a-z0-9][a-z0-9.-]*(:\d{1,5})?(\/[a-z0-9][a-z0-9._-]*)+@sha256:[0-9a-f]{64}$/;
const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;
const hostPattern = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
const maxReleases = 2;

/** The spec of the app in the spec of a workload. Throws "invalid_task" with the field for one that cannot run. */
export function appOf({ workload }: WorkloadSpec): AppSpec {
  if (workload.case !== "app") throw invalid("workload", "has no app");
  const { releases, servingReleaseId, port } = workload.value;
  if (releases.length < 1 || releases.length > maxReleases) throw invalid("releases", "has not one or two releases");
  const ids = releases.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) throw invalid("releases", "has a release twice");
  if (!ids.includes(servingReleaseId)) throw invalid("serving_release_id", "is not one of the releases");
  if (!isPort(port)) throw invalid("port", "is not a port");
  for (const release of releases) requireRelease(release);
  requireEndpoints(workload.value.endpoints);
  return workload.value;
}

function requireRelease(release: Release): void {
  if (!idPattern.test(release.id)) throw invalid("releases.id", "is not an id");
  if (!imagePattern.test(release.imageRef)) throw invalid("releases.image_ref", "names no digest in a registry");
  if (!isPort(release.port)) throw invalid("releases.port", "is not a port");
  if (release.healthCheckPath !== "" && !/^\/[!-~]*$/.test(release.healthCheckPath))
    throw invalid("releases.health_check_path", "is not a path");
  if (release.startTimeoutSeconds < 1) throw invalid("releases.start_timeout_seconds", "is less than 1");
  if (release.drainSeconds < 0) throw invalid("releases.drain_seconds", "is negative");
  if (release.command.some((word) => word.includes("\0"))) throw invalid("releases.command", "has a zero byte");
  for (const { name, value } of release.environment) {
    if (!variablePattern.test(name) || value.includes("\0"))
      throw invalid("releases.environment", `has no valid variable ${JSON.stringify(name)}`);
  }
}

function requireEndpoints(endpoints: readonly AppEndpoint[]): void {
  if (new Set(endpoints.map(({ relay }) => relay)).size !== endpoints.length)
    throw invalid("endpoints.relay", "is not unique");
  for (const { relay, host, port, targetPort = port, addresses } of endpoints) {
    if (relay < 1 || relay > relaysMax) throw invalid("endpoints.relay", "is not the number of a relay");
    if (!hostPattern.test(host)) throw invalid("endpoints.host", "is not a host name");
    if (!isPort(port) || !isPort(targetPort)) throw invalid("endpoints.port", "is not a port");
    if (addresses.length > relayAddressesMax || !addresses.every(isIPv4))
      throw invalid("endpoints.addresses", "has too many addresses, or one that is not of IPv4");
  }
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535;
}

function invalid(field: string, problem: string): TaskFailed {
  return new TaskFailed("invalid_task", `${field} ${problem}.`);
}
