import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Attached, prefixOf } from "#resource-kind/environment-of.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { CompositionObject, Member } from "./composition.ts";

/** What a consumer is told of, in the order of its attachments. Throws NOT_POSSIBLE while one of them cannot be reached. */
export async function attachedTo(
  { status }: CompositionObject,
  consumer: Member,
  kinds: ResourceKinds,
  signal: AbortSignal,
): Promise<readonly Attached[]> {
  const attached: Attached[] = [];
  for (const { name, prefix } of consumer.attachments ?? []) {
    const member = status.members.find((each) => each.name === name && each.step === "ready");
    const outputs = member && (await kinds.of(member.kind).outputs(member.id, signal));
    if (outputs === undefined) throw new HoldfastError("NOT_POSSIBLE", `${name} cannot be reached.`);
    attached.push({ prefix: prefix ?? prefixOf(name), outputs });
  }
  return attached;
}
