import type { ComponentChildren } from "preact";
import { DestroyButton } from "./destroy-button.tsx";
import { Card } from "./parts.tsx";

interface DeletionCardProps {
  /** The kind of resource, such as "webhook". */
  readonly kind: string;
  /** The name that must be typed. */
  readonly name: string;
  readonly refusal: string | undefined;
  readonly destroy: () => Promise<unknown>;
  /** Text of the dialog: the loss, and the way to undo it. */
  readonly children: ComponentChildren;
}

/** The deletion of a page's resource, at the end of the page. */
export function DeletionCard({ kind, name, refusal, destroy, children }: DeletionCardProps) {
  return (
    <Card title="Delete">
      <div class="row">
        <DestroyButton
          text={`Delete ${kind}`}
          kind="danger"
          refusal={refusal}
          title={`Delete ${name}`}
          name={name}
          action={`Delete ${kind}`}
          destroy={destroy}
        >
          {children}
        </DestroyButton>
      </div>
    </Card>
  );
}
