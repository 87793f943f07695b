import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { TextField } from "./field.tsx";
import { ErrorNotice } from "./notice.tsx";
import { Card } from "./parts.tsx";
import { SubmitForm } from "./submit-form.tsx";
import { type Action, useAction } from "./use-action.ts";

interface DestroyButtonProps {
  /** Text of the button that opens the dialog. */
  readonly text: string;
  readonly kind?: "danger" | "plain";
  readonly refusal?: string | undefined;
  readonly title: string;
  /** The name that must be typed. */
  readonly name: string;
  /** The text of the button that confirms. */
  readonly action: string;
  readonly destroy: () => Promise<unknown>;
  /** Text of the dialog: what is lost, and how to undo it. */
  readonly children: ComponentChildren;
}

/** A button for a destructive change: a dialog says what is lost, and the user confirms by typing the name. */
export function DestroyButton({ text, kind = "plain", refusal, destroy, ...dialog }: DestroyButtonProps) {
  const [isAsking, setAsking] = useState(false);
  const action = useAction();
  const confirm = () =>
    action.run(async () => {
      await destroy();
      setAsking(false);
    });
  return (
    <>
      <Button kind={kind} refusal={refusal} onClick={() => setAsking(true)}>
        {text}
      </Button>
      {isAsking && <DestroyDialog {...dialog} work={action} onConfirm={confirm} onClose={() => setAsking(false)} />}
    </>
  );
}

interface DestroyDialogProps extends Pick<DestroyButtonProps, "title" | "name" | "action" | "children"> {
  readonly work: Pick<Action, "isBusy" | "error">;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** The dialog that confirms a destructive change. When it closes, the focus returns to its previous element. */
export function DestroyDialog({ title, name, action, children, work, onConfirm, onClose }: DestroyDialogProps) {
  const [typed, setTyped] = useState("");
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const refusal = typed === name ? undefined : `Type ${name} first.`;
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose}>
      <SubmitForm class="stack" refusal={refusal} onSubmit={onConfirm}>
        <h2>{title}</h2>
        {children}
        <ErrorNotice error={work.error} />
        <TextField label={`Type ${name} to confirm`} value={typed} onInput={setTyped} autocomplete="off" />
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" type="submit" busy={work.isBusy} refusal={refusal}>
            {action}
          </Button>
        </div>
      </SubmitForm>
    </dialog>
  );
}

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
