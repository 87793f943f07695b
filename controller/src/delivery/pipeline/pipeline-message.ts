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
import { isWell } from "#composition/composition-plan.ts";
import type { Observe } from "#composition/composition-step.ts";
import type { CompositionObject, Member } from "#composition/composition.ts";
import { statusOfMember } from "#composition/member-status.ts";
import type { Template } from "../template/template.ts";

/**
 * Pure: the status of a pipeline, and why it is degraded. It is deploying until all were healthy once, unless one of them failed or
 * cannot be made.
 */
function pipelineStatus(
  { status, metadata }: CompositionObject,
  observe: Observe,
): { readonly status: PipelineStatus; readonly detail: string | null } {
  if (metadata.deletionRequestedAt !== undefined) return { status: PipelineStatus.DELETING, detail: null };
  const ill = status.members.find((member) => member.step !== "planned" && !isWell(observe(member)));
  const reason = ill === undefined ? null : `${ill.name}: ${observe(ill).detail ?? "it is not healthy"}`;
  const wasHealthy = status.announcedHealthy !== undefined;
  const failed = status.members.find((member) => member.step !== "planned" && observe(member).phase === "failed");
  if (failed !== undefined)
    return { status: PipelineStatus.DEGRADED, detail: `${failed.name}: ${observe(failed).detail ?? "it failed"}` };
  if (!wasHealthy && status.detail !== null) return { status: PipelineStatus.DEGRADED, detail: status.detail };
  if (!wasHealthy) return { status: PipelineStatus.DEPLOYING, detail: reason };
  return { status: ill === undefined ? PipelineStatus.RUNNING : PipelineStatus.DEGRADED, detail: reason };
}

/** The pipeline as users see it. */
export function pipelineMessage(pipeline: CompositionObject, observe: Observe): Pipeline {
  return create(PipelineSchema, pipelineFields(pipeline, observe));
}

/** What a pipeline and its detail have alike. */
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

/** A service of a pipeline as users see it. */
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
    healthy: member.step !== "planned" && isWell(observed),
    ...(member.step !== "planned" && { serviceId: member.id }),
    ...(detail !== null && { statusDetail: detail }),
  };
}

/** The template as users see it; `cents` is undefined while an engine of it is missing. */
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

/** A member of a spec that is a text; another one where it is not there. */
export function textOf(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
