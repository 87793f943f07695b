import { CheckField } from "../parts/field.tsx";
import { account } from "../session/account.ts";

interface ScopesFieldProps {
  readonly chosen: readonly string[];
  readonly onInput: (scopes: readonly string[]) => void;
  readonly fault: string | undefined;
}

/** A choice of scopes, among those of the user: a credential cannot have others. */
export function ScopesField({ chosen, onInput, fault }: ScopesFieldProps) {
  const scopes = account.value.me.scopes.filter((scope) => !scope.startsWith("platform:"));
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
