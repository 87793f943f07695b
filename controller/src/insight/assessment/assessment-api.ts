import { type Call, type Handlers, serve, type ServedService } from "@holdfast/common/call.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { createWorkerThread } from "@holdfast/common/worker-thread.ts";
import { AssessmentService } from "@holdfast/proto/holdfast/v1/assessment_pb.ts";
import type { Assessment } from "@holdfast/tds/assess/assess-script.ts";
import type { LayoutMode } from "@holdfast/tds/bind/databases.ts";
import { auditOf } from "#access/caller.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";

export interface AssessmentApiDeps {
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly auditedActs: Pick<AuditedActs, "read">;
}

interface AssessmentRequest {
  readonly script: string;
  readonly layoutMode: LayoutMode;
}

const sqlBytesMax = 262_144;
const memoryMb = 256;

/** The RPCs of AssessmentService. A script is parsed in a worker thread and neither stored nor logged. */
export function createAssessmentApi({ access, tasks, auditedActs }: AssessmentApiDeps): ServedService {
  const thread = createWorkerThread<AssessmentRequest, Assessment>(new URL("./assessment-worker.ts", import.meta.url), {
    memoryMb,
  });

  /** The layout of a service; throws NOT_SUPPORTED for one whose language is not assessed. */
  function requireAssessment(serviceId: string, call: Call): LayoutMode {
    const { databaseType, layoutMode = "single-db" } = access.require(serviceId, call).object.spec;
    if (engineOf(databaseType)?.hasAssessment === true) return layoutMode;
    throw new HoldfastError("NOT_SUPPORTED", `Services of ${databaseType} have no assessment of scripts.`);
  }

  const handlers: Handlers<typeof AssessmentService> = {
    async assessScript({ serviceId, sql }, call) {
      const layoutMode = requireAssessment(serviceId, call);
      const entry = auditOf(call, "script.assess", "managed-service", serviceId);
      const { statements, findings, truncated } = await auditedActs.read(entry, () =>
        thread.request({ script: sql, layoutMode }),
      );
      return { statements, findings: [...findings], truncated };
    },
    async listUnsupportedFeatures({ serviceId }, call) {
      requireAssessment(serviceId, call);
      const { object } = access.requireRunning(serviceId, call);
      const value = { $typeName: "holdfast.agent.v1.ReadUnsupportedFeatures" } as const;
      const { features, since } = await tasks.run(object, { case: "readUnsupportedFeatures", value }, call.signal);
      return {
        features: features.map(({ feature, count, advice }) => ({ feature, count, advice })),
        ...(since && { since }),
      };
    },
  };
  return serve(AssessmentService, handlers, { assessScript: ({ sql }) => faultsOf(sql) });
}

/** The limit of bytes, which the protos cannot express. */
function faultsOf(sql: string): readonly FieldFault[] {
  if (Buffer.byteLength(sql) <= sqlBytesMax) return [];
  return [{ field: "sql", pointer: "/sql", code: "too_long", detail: `must be at most ${sqlBytesMax} bytes` }];
}
