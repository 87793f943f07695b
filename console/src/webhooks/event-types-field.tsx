import { useEffect, useState } from "preact/hooks";
import { eventTitle } from "../events/event-view.ts";
import type { ApiDocument } from "../generic/document.ts";
import { CheckField, TextField } from "../parts/field.tsx";
import { account } from "../session/account.ts";
import { eventsOf, eventTypesOf, withEvent } from "./webhook-view.ts";

let loaded: readonly string[] | undefined;

/** The types of events of this installation, which are read once; empty until they are loaded. */
function useEventTypes(): readonly string[] {
  const [types, setTypes] = useState(loaded ?? []);
  useEffect(() => {
    if (loaded !== undefined) return;
    account.value.transport.request<ApiDocument>("GET", "/openapi.json").then(
      (document) => {
        loaded = eventTypesOf(document);
        setTypes(loaded);
      },
      (error: unknown) => globalThis.reportError(error),
    );
  }, []);
  return types;
}

interface EventTypesProps {
  readonly value: string;
  readonly onInput: (text: string) => void;
  readonly fault: string | undefined;
}

/** The types of events of a webhook as a text with one per line, and a list from which they are chosen. */
export function EventTypesField(field: EventTypesProps) {
  const types = useEventTypes();
  const chosen = eventsOf(field.value) ?? [];
  return (
    <>
      <TextField label="Types of events" help="One per line; empty for all, except opt-in events" lines {...field} />
      {types.length > 0 && (
        <details>
          <summary>Choose from the list</summary>
          <div class="choices">
            {types.map((type) => (
              <CheckField
                key={type}
                label={
                  <>
                    {eventTitle(type)} <code class="small quiet">{type}</code>
                  </>
                }
                checked={chosen.includes(type)}
                onInput={(isOn) => field.onInput(withEvent(field.value, type, isOn))}
              />
            ))}
          </div>
        </details>
      )}
    </>
  );
}
