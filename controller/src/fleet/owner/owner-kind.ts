import { contributionPoint } from "#kernel/contribution-point.ts";

/** A kind of object that owns machines, such as services. */
export interface OwnerKind {
  /** Name of the kind. */
  readonly kind: string;
  /** The owner in words for operators, such as `service orders`; undefined for one that does not exist. */
  describe(id: string): string | undefined;
}

export const ownerKinds = contributionPoint<OwnerKind>("owners of machines", { key: ({ kind }) => kind });
