import { CheckField } from "../parts/field.tsx";
import { account } from "../session/account.ts";
import { possibleScopes } from "./token-view.ts";

interface ScopesFieldProps {
  /** The scopes to choose from; absent for those of the user. */
  readonly scopes?: readonly string[];
  readonly chosen: readonly string[];
  readonly onInput: (scopes: readonly string[]) => void;
  readonly fault: string | undefined;
}

/** A choice of scopes, among those of the user: a credential cannot have others. */
export function ScopesField({
  scopes = possibleScopes("", account.value.me.scopes),
  chosen,
  onInput,
  fault,
}: ScopesFieldProps) {
  return (
    <fieldset class="field">
      <legend>
        <b>Scopes</b>
      </legend>
      <div class="choices">
        {scopes.map((scope) => (
          <CheckField
            key={scope}
            label={<code>{scope}</code>}
            checked={chosen.includes(scope)}
            onInput={(isOn) => onInput(isOn ? [...chosen, scope] : chosen.filter((each) => each !== scope))}
          />
        ))}
      </div>
      {fault !== undefined && <p class="fault">{fault}</p>}
    </fieldset>
  );
}
