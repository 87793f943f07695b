import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AppDeploymentSchema,
  AppDeploymentStatus,
  type AppNodeSchema,
  AppNodeStatus,
} from "@holdfast/proto/holdfast/v1/app_deployment_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { DeploymentObject, DeploymentStatus } from "./deployment.ts";
import type { ObservedNode } from "./observed-node.ts";

// biome-ignore format: a table, aligned so that it reads as one
const statuses: Record<DeploymentStatus["state"], AppDeploymentStatus> = {
  deploying: AppDeploymentStatus.DEPLOYING,
  succeeded: AppDeploymentStatus.SUCCEEDED,
  failed:    AppDeploymentStatus.FAILED,
};

export function deploymentMessage(
  { metadata, spec, status }: DeploymentObject,
  servingId: string | null,
): MessageInitShape<typeof AppDeploymentSchema> {
  return {
    id: metadata.id,
    number: spec.number,
    status: statuses[status.state],
    imageRef: spec.settings.imageRef,
    ...(status.digest !== null && { imageDigest: status.digest }),
    serves: metadata.id === servingId,
    ...(status.reason !== "" && { reason: status.reason }),
    createdAt: timestampFromMs(metadata.createdAt),
    ...(status.finishedAt !== null && { finishedAt: timestampFromMs(status.finishedAt) }),
  };
}

/** `agentVersion`: undefined without a session. */
export function nodeMessage(
  { id, hasSession, isHealthy, report }: ObservedNode,
  machine: MachineObject | undefined,
  { agentVersion, floatingIp }: { readonly agentVersion: string | undefined; readonly floatingIp: string | undefined },
): MessageInitShape<typeof AppNodeSchema> {
  const servingId = report?.app?.servingReleaseId ?? "";
  const wasThere = report !== undefined || (machine?.status.certificate ?? null) !== null;
  const status = hasSession
    ? isHealthy && servingId !== ""
      ? AppNodeStatus.RUNNING
      : AppNodeStatus.STARTING
    : wasThere
      ? AppNodeStatus.UNREACHABLE
      : AppNodeStatus.STARTING;
  return {
    id,
    status,
    zone: machine?.spec.zone ?? "",
    ...(servingId !== "" && { deploymentId: servingId }),
    ...(agentVersion !== undefined && { agentBuild: agentVersion }),
    ...(floatingIp !== undefined && { floatingIp }),
  };
}
