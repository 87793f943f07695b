import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Pipeline,
  type PipelineMemberSchema,
  PipelineSchema,
  PipelineStatus,
  type PipelineTemplateSchema,
} from "@holdfast/proto/holdfast/v1/pipeline_pb.ts";
import { amountOf } from "#catalog/price.ts";
import { isMemberHealthy } from "#composition/composition-plan.ts";
import type { Observe } from "#composition/composition-step.ts";
import type { CompositionObject, Member } from "#composition/composition.ts";
import { statusOfMember } from "#composition/member.ts";
import type { Template } from "../template/template.ts";

/**
 * The status of a pipeline, and the reason for it. A pipeline is DEPLOYING until all services have been healthy once;
 * it is DEGRADED if a service failed or cannot be created.
 */
function pipelineStatus(
  { status, metadata }: CompositionObject,
  observe: Observe,
): { readonly status: PipelineStatus; readonly detail: string | null } {
  if (metadata.deletionRequestedAt !== undefined) return { status: PipelineStatus.DELETING, detail: null };
  const unhealthy = status.members.find((member) => member.step !== "planned" && !isMemberHealthy(observe(member)));
  const reason =
    unhealthy === undefined ? null : `${unhealthy.name}: ${observe(unhealthy).detail ?? "it is not healthy"}`;
  const wasHealthy = status.announcedHealthy !== undefined;
  const failed = status.members.find((member) => member.step !== "planned" && observe(member).phase === "failed");
  if (failed !== undefined)
    return { status: PipelineStatus.DEGRADED, detail: `${failed.name}: ${observe(failed).detail ?? "it failed"}` };
  if (!wasHealthy && status.detail !== null) return { status: PipelineStatus.DEGRADED, detail: status.detail };
  if (!wasHealthy) return { status: PipelineStatus.DEPLOYING, detail: reason };
  return { status: unhealthy === undefined ? PipelineStatus.RUNNING : PipelineStatus.DEGRADED, detail: reason };
}

/** The API message of a pipeline. */
export function pipelineMessage(pipeline: CompositionObject, observe: Observe): Pipeline {
  return create(PipelineSchema, pipelineFields(pipeline, observe));
}

/** The fields that a pipeline has in lists and in its detail. */
export function pipelineFields(pipeline: CompositionObject, observe: Observe) {
  const { metadata, spec } = pipeline;
  const { status, detail } = pipelineStatus(pipeline, observe);
  return {
    id: metadata.id,
    templateId: spec.template?.name ?? "",
    name: metadata.name,
    zone: spec.zone ?? "",
    status,
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
    ...(detail !== null && { statusDetail: detail }),
  };
}

/** The API message of a pipeline's service. */
export function memberMessage(
  member: Member,
  role: string,
  engine: string,
  observe: Observe,
): MessageInitShape<typeof PipelineMemberSchema> {
  const observed = observe(member);
  const { word, detail } = statusOfMember(member, observed);
  return {
    role,
    databaseType: engine,
    status: word,
    healthy: member.step !== "planned" && isMemberHealthy(observed),
    ...(member.step !== "planned" && { serviceId: member.id }),
    ...(detail !== null && { statusDetail: detail }),
  };
}

/** The API message of a template; `cents` is undefined if the installation lacks one of its engines. */
export function pipelineTemplateMessage(
  { name, version, title, description, resources }: Template,
  offer: { readonly reason: string | undefined; readonly cents: number | undefined; readonly currency: string },
): MessageInitShape<typeof PipelineTemplateSchema> {
  return {
    id: name,
    name: title,
    description,
    version,
    available: offer.reason === undefined,
    currency: offer.currency,
    services: resources.map((resource) => ({
      role: resource.role ?? resource.name,
      databaseType: textOf(resource.spec["database_type"], ""),
      defaultPlan: textOf(resource.spec["plan_name"], "tier-1"),
      storageGb: Number(resource.spec["storage_size_gb"] ?? 1),
      extensions: [...resource.extensions],
      ...(typeof resource.spec["version"] === "string" && { version: resource.spec["version"] }),
    })),
    ...(offer.reason !== undefined && { unavailableReason: offer.reason }),
    ...(offer.cents !== undefined && { estimatedMonthlyCost: amountOf(offer.cents) }),
  };
}

/** The value if it is a string, otherwise `fallback`. */
export function textOf(value: unknown, fallback: string): string {
  return typeof value === "string" ? value : fallback;
}
