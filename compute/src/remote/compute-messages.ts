import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  AdmitMachineResponseSchema,
  type Enrollment as EnrollmentMessage,
  EnrollmentSchema,
  type MachineFacts as FactsMessage,
  type Image,
  ImageSchema,
  MachineFactsSchema,
  MachinePlanSchema,
  MachineSpecSchema,
  type MachinePlan as PlanMessage,
  PolicyRuleSchema,
  type PolicyRule as RuleMessage,
  type MachineSpec as SpecMessage,
} from "@holdfast/proto/holdfast/host/v1/host_pb.ts";
import type {
  Admission,
  Enrollment,
  ImageFacts,
  MachineFacts,
  MachinePlan,
  MachineSpec,
  PolicyRule,
} from "../compute-provider.ts";

/**
 * Conversions between the types of the compute interface and the messages of holdfast.host.v1. A missing field becomes
 * its zero value.
 */
export const planMessage = ({ vcpu, memoryBytes, rootBytes }: MachinePlan) =>
  create(MachinePlanSchema, {
    vcpu,
    memoryBytes: BigInt(memoryBytes),
    ...(rootBytes !== undefined && { rootBytes: BigInt(rootBytes) }),
  });

export const planOf = (plan: PlanMessage | undefined): MachinePlan => ({
  vcpu: plan?.vcpu ?? 0,
  memoryBytes: Number(plan?.memoryBytes ?? 0n),
  ...(plan?.rootBytes !== undefined && { rootBytes: Number(plan.rootBytes) }),
});

/** The message of a spec, without `hostId`: the host that receives the message is the host of the machine. */
export function specMessage({ plan, diskBytes, image = "", ahead = false, kind = "container", ...spec }: MachineSpec) {
  const { id, installationId, zone, storageTier, engine, version, guestKernel = "" } = spec;
  return create(MachineSpecSchema, {
    id,
    installationId,
    plan: planMessage(plan),
    diskBytes: BigInt(diskBytes),
    zone,
    storageTier,
    engine,
    version,
    image,
    ahead,
    kind,
    guestKernel,
  });
}

export function specOf(spec: SpecMessage): MachineSpec {
  const { id, installationId, zone, storageTier, engine, version, image, ahead, guestKernel } = spec;
  return {
    id,
    installationId,
    plan: planOf(spec.plan),
    diskBytes: Number(spec.diskBytes),
    zone,
    storageTier,
    engine,
    version,
    ...(image !== "" && { image }),
    ...(ahead && { ahead }),
    ...(spec.kind === "virtual_machine" && { kind: spec.kind }),
    ...(guestKernel !== "" && { guestKernel }),
  };
}

export const factsMessage = ({ state, plan, diskBytes, starts, snapshots, ...facts }: MachineFacts) =>
  create(MachineFactsSchema, {
    ...facts,
    snapshots: [...snapshots],
    running: state === "running",
    plan: planMessage(plan),
    diskBytes: BigInt(diskBytes),
    starts: BigInt(starts),
  });

export function factsOf(facts: FactsMessage): MachineFacts {
  const { id, running, address, publicAddress, image, guestKernel, hasData, snapshots } = facts;
  return {
    id,
    state: running ? "running" : "stopped",
    address,
    // Hosts of earlier releases report one address only.
    publicAddress: publicAddress === "" ? address : publicAddress,
    diskBytes: Number(facts.diskBytes),
    plan: planOf(facts.plan),
    image,
    ...(guestKernel !== "" && { guestKernel }),
    hasData,
    starts: Number(facts.starts),
    snapshots,
  };
}

export const enrollmentMessage = ({ controllers, ...enrollment }: Enrollment) =>
  create(EnrollmentSchema, { ...enrollment, controllers: [...controllers] });

export function enrollmentOf({ installationId, controllers, caFingerprint, token }: EnrollmentMessage): Enrollment {
  return { installationId, controllers, caFingerprint, token };
}

export const admissionMessage = (admission: Admission) =>
  create(AdmitMachineResponseSchema, { refusal: admission.admitted ? "" : admission.reason });

export const admissionOf = (refusal: string): Admission =>
  refusal === "" ? { admitted: true } : { admitted: false, reason: refusal };

export const imageMessage = ({ textLibraries = {}, madeAt, plugins = [], ...image }: ImageFacts) =>
  create(ImageSchema, {
    ...image,
    ...(madeAt !== undefined && { madeAt: timestampFromMs(madeAt) }),
    textLibraries: { ...textLibraries },
    plugins: [...plugins],
  });

export function imageOf({
  engine,
  version,
  available,
  reason,
  image,
  engineVersion,
  madeAt,
  textLibraries,
  plugins,
}: Image): ImageFacts {
  return {
    engine,
    version,
    available,
    ...(reason !== "" && { reason }),
    ...(image !== "" && { image }),
    ...(engineVersion !== "" && { engineVersion }),
    ...(madeAt && { madeAt: timestampMs(madeAt) }),
    ...(Object.keys(textLibraries).length > 0 && { textLibraries }),
    ...(plugins.length > 0 && { plugins }),
  };
}

export const ruleMessage = ({ owner, to, port, from }: PolicyRule) =>
  create(PolicyRuleSchema, {
    ownerKind: owner.kind,
    ownerId: owner.id,
    to,
    ...(port !== null && { port }),
    from: [...from],
  });

export function ruleOf({ ownerKind, ownerId, to, port, from }: RuleMessage): PolicyRule {
  return { owner: { kind: ownerKind, id: ownerId }, to, port: port ?? null, from };
}
