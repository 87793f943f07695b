import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { EnginePooler, PoolerMode } from "@holdfast/common/engine-catalog/engine-row.ts";
import { type FieldFault, HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";

/** Connection pooler of a service, by which clients share sessions of the engine. */
export interface Pooler {
  readonly enabled: boolean;
  readonly mode: PoolerMode;
}

/** Fields of a service's spec that determine its pooler. */
interface PooledSpec {
  readonly databaseType: string;
  readonly pooler?: Pooler;
}

/** Requested change; absent fields do not change. */
export interface PoolerChoice {
  readonly enabled?: boolean | undefined;
  readonly mode?: string | undefined;
}

/** Pooler of the service, disabled by default; undefined for an engine without one. */
export function poolerOf({ databaseType, pooler }: PooledSpec): Pooler | undefined {
  const offered = engineOf(databaseType)?.pooler;
  // Without modes each client has a session for the duration of its connection.
  return offered && (pooler ?? { enabled: false, mode: offered.modes[0] ?? "session" });
}

/** Pooler in a response. It has no mode if the engine offers none. */
export function poolerMessage(spec: PooledSpec): { readonly enabled: boolean; readonly mode?: PoolerMode } | undefined {
  const pooler = poolerOf(spec);
  const hasModes = (engineOf(spec.databaseType)?.pooler?.modes.length ?? 0) > 0;
  return pooler && (hasModes ? pooler : { enabled: pooler.enabled });
}

/** Port of the service's pooler; undefined while it is disabled. */
export function poolerPortOf(spec: PooledSpec): number | undefined {
  return poolerOf(spec)?.enabled === true ? engineOf(spec.databaseType)?.pooler?.port : undefined;
}

/** Ports for clients by listener name. */
export function clientPorts(spec: PooledSpec & { readonly port: number }): Readonly<Record<string, number>> {
  const pooler = poolerPortOf(spec);
  const { listener = "engine", engineListener, enginePort = spec.port } = engineOf(spec.databaseType)?.frontEnd ?? {};
  return {
    [listener]: spec.port,
    ...(engineListener !== undefined && { [engineListener]: enginePort }),
    ...(pooler !== undefined && { pooler }),
  };
}

/** Pooler of the service after the request; undefined if nothing must be stored. */
export function chosenPooler(spec: PooledSpec, choice: PoolerChoice | undefined): Pooler | undefined {
  const before = poolerOf(spec);
  if (choice === undefined || before === undefined) return spec.pooler;
  const { enabled = before.enabled, mode = before.mode } = choice;
  return { enabled, mode: mode === "session" ? "session" : "transaction" };
}

/** Fault of a requested pooler, or mode of one, that the engine does not support. */
export function poolerFault(databaseType: string, choice: PoolerChoice | undefined): FieldFault | undefined {
  const offered = engineOf(databaseType)?.pooler;
  const fault = (field: string, detail: string) => ({
    field,
    pointer: `/${field.replaceAll(".", "/")}`,
    code: "not_supported",
    detail,
  });
  if (choice?.enabled === true && offered === undefined) return fault("pooler", `${databaseType} has no pooler`);
  if (choice?.mode === undefined || offered === undefined || isMode(offered, choice.mode)) return undefined;
  return fault("pooler.mode", `the pooler of ${databaseType} has no modes; omit this field`);
}

function isMode({ modes }: EnginePooler, mode: string): boolean {
  return modes.some((each) => each === mode);
}

/** Throws NOT_POSSIBLE if the request enables the pooler and the image of a machine lacks it. */
export function requirePooler(
  before: PooledSpec,
  after: PooledSpec & { readonly nodes: readonly { readonly id: string }[] },
  observed: (nodeId: string) => InstanceObservation | undefined,
): void {
  if (after.pooler?.enabled !== true || before.pooler?.enabled === true) return;
  const lacking = after.nodes.filter(({ id }) => observed(id)?.offersPooler === false);
  if (lacking.length === 0) return;
  const detail = "the image of the service has no pooler yet; apply the pending update first";
  throw new HoldfastError("NOT_POSSIBLE", `pooler: ${detail}.`, {
    errors: [{ field: "pooler", pointer: "/pooler", code: "image_outdated", detail }],
  });
}

/** Throws INVALID_REQUEST for an engine without the requested pooler or mode. */
export function requirePoolerEngine(databaseType: string, choice: PoolerChoice | undefined): void {
  const fault = poolerFault(databaseType, choice);
  if (fault !== undefined) throw invalid({ field: fault.field, code: fault.code, detail: fault.detail });
}
