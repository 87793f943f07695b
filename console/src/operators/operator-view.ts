import { ageText, bytesText, numberText } from "../format.ts";
import { cellOf, isRecord } from "../generic/generic-view.ts";
import { memberOf } from "../member-of.ts";
import { type Tone, toneOf } from "../tone.ts";

/** A list of holdfast.admin.v1 as a table. */
export interface OperatorList {
  readonly title: string;
  readonly service: string;
  readonly method: string;
  /** Member of the response with the entries. */
  readonly plural: string;
  readonly columns: readonly OperatorColumn[];
  readonly empty: string;
}

type OperatorColumn = readonly [title: string, member: string, kind?: "state" | "time" | "bytes" | "id" | "count"];

/** A tab of the page for operators: one or more lists. */
interface OperatorTab {
  readonly name: string;
  readonly title: string;
  readonly lists: readonly OperatorList[];
}

// biome-ignore format: a table, aligned so that it reads as one
export const operatorTabs: readonly OperatorTab[] = [
  { name: "hosts", title: "Hosts", lists: [
    { title: "Hosts", service: "HostService", method: "ListHosts", plural: "hosts", empty: "No hosts", columns: [
      ["Name", "id"], ["State", "state", "state"], ["Zone", "zone"], ["Machines", "machines", "count"],
      ["Free memory", "memoryFreeBytes", "bytes"], ["Free disk", "diskFreeBytes", "bytes"],
      ["Cordoned", "cordoned"], ["Reason", "reason"]] },
  ] },
  { name: "machines", title: "Machines", lists: [
    { title: "Machines", service: "FleetService", method: "ListMachines", plural: "machines", empty: "No machines",
      columns: [["Machine", "id", "id"], ["Owner", "owner"], ["State", "state", "state"], ["Zone", "zone"],
        ["Image", "image"], ["Address", "address"], ["Certificate expires", "certificateExpiresAt", "time"],
        ["Reason", "reason"]] },
    { title: "Tasks", service: "FleetService", method: "ListTasks", plural: "tasks", empty: "No tasks",
      columns: [["Task", "id", "id"], ["Kind", "kind"], ["State", "status", "state"], ["Machine", "machineId", "id"],
        ["Created", "createdAt", "time"], ["Error", "error"]] },
  ] },
  { name: "agents", title: "Agents", lists: [
    { title: "Agents", service: "AgentRolloutService", method: "ListAgents", plural: "agents", empty: "No agents",
      columns: [["Machine", "machineId", "id"], ["Release", "release"], ["State", "state", "state"],
        ["Attempts", "attempts", "count"], ["Reason", "reason"]] },
  ] },
  { name: "controllers", title: "Controllers", lists: [
    { title: "Controllers", service: "ControlService", method: "ListControllers", plural: "controllers",
      empty: "No controllers", columns: [["Controller", "id", "id"], ["Address", "address"],
        ["Started", "startedAt", "time"], ["Shards", "shards", "count"], ["Sessions", "sessions", "count"], ["Draining", "draining"]] },
    { title: "Reconcilers", service: "ControlService", method: "ListReconciles", plural: "reconcilers",
      empty: "No reconcilers", columns: [["Reconciler", "reconciler"], ["Queued", "queued", "count"], ["Running", "running", "count"],
        ["Failing", "failing", "count"], ["Last run", "lastRunAt", "time"], ["Last error", "lastError"]] },
    { title: "Stores", service: "ControlService", method: "ListStores", plural: "stores", empty: "No stores",
      columns: [["Store", "name"], ["State", "state", "state"], ["Used", "usedBytes", "bytes"],
        ["Quota", "quotaBytes", "bytes"], ["Reason", "reason"]] },
  ] },
  { name: "pauses", title: "Pauses", lists: [
    { title: "Paused automation", service: "ControlService", method: "ListHolds", plural: "holds",
      empty: "No automation is paused", columns: [["Automation", "kind"], ["Reason", "reason"],
        ["Since", "since", "time"]] },
  ] },
  { name: "maintenance", title: "Maintenance", lists: [
    { title: "Images", service: "MaintenanceService", method: "ListImages", plural: "images", empty: "No images",
      columns: [["Image", "id", "id"], ["Seen", "firstSeenAt", "time"], ["Services", "services", "count"],
        ["Rolled back", "rolledBack", "count"], ["Urgent", "urgent"], ["Reason", "reason"]] },
    { title: "Services with updates", service: "MaintenanceService", method: "ListMaintenance", plural: "services",
      empty: "No service waits for an update", columns: [["Service", "serviceId", "id"], ["Applied", "applyAt", "time"],
        ["Urgent", "urgent"], ["Step", "step"], ["Blocked", "blockedReason"], ["Waits for hosts", "awaitedReason"]] },
  ] },
  { name: "backups", title: "Backups", lists: [
    { title: "Archives", service: "BackupService", method: "ListArchives", plural: "archives", empty: "No archives",
      columns: [["Service", "serviceName"], ["Engine", "engine"], ["Backups", "backups", "count"], ["Gaps", "gaps", "count"],
        ["Restorable from", "restorableFrom", "time"], ["To", "restorableTo", "time"]] },
  ] },
  { name: "organizations", title: "Organizations", lists: [
    { title: "Organizations", service: "OrganizationService", method: "ListOrganizations", plural: "organizations",
      empty: "No organizations", columns: [["Name", "name"], ["Id", "id", "id"], ["Services", "usage.services", "count"],
        ["Members", "usage.members", "count"], ["Storage in GB", "usage.storageGb", "count"], ["Created", "createdAt", "time"]] },
  ] },
];

/** A member of an entry, such as "id" or "usage.services". */
export function valueOf(entry: Readonly<Record<string, unknown>>, member: string): unknown {
  return member
    .split(".")
    .reduce<unknown>((value, name) => (isRecord(value) ? memberOf(value, name) : undefined), entry);
}

/** The tone of a state; "running" is the complete state of a machine. */
export function operatorTone(state: string): Tone {
  return state === "running" ? "good" : toneOf(state);
}

/** The text of a cell. Absent members are the defaults of proto3: 0, false or empty. */
export function operatorText(value: unknown, kind: OperatorColumn[2], now: number): string {
  if (kind === "count") return numberText(Number(value ?? 0));
  if (value === undefined || value === null || value === "") return "";
  if (kind === "time" && typeof value === "string") return ageText(value, now);
  // 64-bit numbers are texts in JSON.
  if (kind === "bytes") return bytesText(Number(value));
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? numberText(value) : cellOf(value);
}
