import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  readonly help?: ComponentChildren;
  /** The reason why the value is refused. */
  readonly fault?: string | undefined;
}

interface TextFieldProps extends FieldProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: "text" | "password" | "number" | "search" | "datetime-local" | "time";
  readonly autocomplete?: string;
  readonly required?: boolean;
  readonly lines?: boolean;
  readonly min?: number | string;
  readonly max?: number | string;
}

/** An input of text with its label, its help and its fault. */
export function TextField({ label, help, fault, value, onInput, lines = false, ...input }: TextFieldProps) {
  const id = useId();
  const common = {
    id,
    class: "input",
    value,
    // Times have seconds, and the browser refuses them without this step.
    ...(input.type === "datetime-local" && { step: 1 }),
    "aria-invalid": fault === undefined ? undefined : ("true" as const),
    "aria-describedby": `${id}-help ${id}-fault`,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
  };
  return (
    <FieldFrame id={id} label={label} help={help} fault={fault}>
      {lines ? (
        <textarea {...common} spellcheck={false} />
      ) : (
        // The types of attributes depend on the type of the input, which is a variable here.
        <input {...({ ...common, ...input } as JSX.IntrinsicElements["input"])} spellcheck={false} />
      )}
    </FieldFrame>
  );
}

interface SelectProps extends FieldProps {
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onInput: (value: string) => void;
}

export function SelectField({ label, help, fault, value, options, onInput }: SelectProps) {
  const id = useId();
  return (
    <FieldFrame id={id} label={label} help={help} fault={fault}>
      <select
        id={id}
        class="input"
        value={value}
        aria-invalid={fault === undefined ? undefined : "true"}
        aria-describedby={`${id}-help ${id}-fault`}
        onInput={(event) => onInput(event.currentTarget.value)}
      >
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </FieldFrame>
  );
}

function FieldFrame({ id, label, help, fault, children }: FieldProps & { id: string; children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {help !== undefined && (
        <p class="quiet small" id={`${id}-help`}>
          {help}
        </p>
      )}
      <p class="fault" id={`${id}-fault`} aria-live="polite" hidden={fault === undefined}>
        {fault}
      </p>
    </div>
  );
}

interface CheckProps {
  readonly label: ComponentChildren;
  readonly checked: boolean;
  readonly onInput: (checked: boolean) => void;
}

export function CheckField({ label, checked, onInput }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onInput={(event) => onInput(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

interface Choice {
  readonly value: string;
  readonly title: string;
  readonly detail?: string;
  /** Reason why the value cannot be chosen. */
  readonly refusal?: string | undefined;
}

interface ChoiceProps {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onInput: (value: string) => void;
  readonly fault?: string | undefined;
}

/** A few values in a row, of which one is chosen. */
export function ChoiceField({ label, name, value, choices, onInput, fault }: ChoiceProps) {
  return (
    <fieldset class="field">
      <legend class="label">
        <b>{label}</b>
      </legend>
      <div class="choices">
        {choices.map((choice) => (
          <label class="choice" key={choice.value}>
            <input
              type="radio"
              name={name}
              value={choice.value}
              checked={choice.value === value}
              disabled={choice.refusal !== undefined}
              onInput={() => onInput(choice.value)}
            />
            <b>{choice.title}</b>
            {(choice.refusal ?? choice.detail) && <span class="quiet small">{choice.refusal ?? choice.detail}</span>}
          </label>
        ))}
      </div>
      {fault !== undefined && <p class="fault">{fault}</p>}
    </fieldset>
  );
}
