import { memberOf } from "../member-of.ts";
import { TextField } from "../parts/field.tsx";
import type { Form } from "../parts/use-form.ts";
import type { DestinationField } from "./export-view.ts";

interface DestinationFieldsProps {
  readonly form: Form<Readonly<Record<string, string>>>;
  readonly fields: readonly DestinationField[];
  /** True for the change of an export: the page never has a stored secret. */
  readonly isStored?: boolean;
}

/** The settings of a destination in a form. */
export function DestinationFields({ form, fields, isStored = false }: DestinationFieldsProps) {
  return (
    <>
      {fields.map(({ name, label, isSecret = false, help }) => (
        <TextField
          key={name}
          label={label}
          help={isSecret && isStored ? "Empty: unchanged" : help}
          type={isSecret ? "password" : "text"}
          autocomplete="off"
          value={memberOf(form.values, name) ?? ""}
          onInput={(value) => form.set(name, value)}
          fault={form.fault(`configuration.${name}`)}
        />
      ))}
    </>
  );
}
