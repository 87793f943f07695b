import type { Operation } from "@holdfast/sdk/responses.ts";
import { labelOf } from "../format.ts";
import { Progress } from "../parts/parts.tsx";
import { isOpen, remainingText, stepText } from "../services/service-view.ts";

/** The operation in progress, with its step, progress and deadline. */
export function OperationNotice({ operation }: { readonly operation: Operation | null }) {
  if (!isOpen(operation)) return null;
  const step = stepText(operation.step);
  const remaining = remainingText(operation, Date.now());
  return (
    <section class="card" aria-label="Operation in progress">
      <div class="body stack" data-gap="s">
        <div class="row">
          <b>{labelOf(operation.type)}</b>
          <span class="quiet" role="status">
            {step}
          </span>
          <span class="grow" />
          <span class="quiet small number">
            {operation.progress_pct}%{remaining === undefined ? "" : `, ${remaining}`}
          </span>
        </div>
        <Progress percent={operation.progress_pct} label={`${labelOf(operation.type)}: ${step}`} />
      </div>
    </section>
  );
}
