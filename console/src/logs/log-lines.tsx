import { useState } from "preact/hooks";
import type { LogLevel, LogLine } from "@holdfast/sdk/responses.ts";
import { useLive } from "../live/use-live.ts";
import { Button } from "../parts/button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { Card, Loading } from "../parts/parts.tsx";
import { chooseQuery, currentAddress, setQuery } from "../router/location.ts";
import { account } from "../session/account.ts";
import { visibleText } from "./logs-view.ts";

const levels: readonly (readonly [LogLevel, string])[] = [
  ["debug", "All levels"],
  ["info", "Information and above"],
  ["warning", "Warnings and above"],
  ["error", "Errors"],
];
const maxLines = 200;

/** The newest lines that an engine or an app printed; the filter is in the address. */
export function LogLines({ ownerId }: { readonly ownerId: string }) {
  const { query } = currentAddress.value;
  const [isPaused, setPaused] = useState(false);
  const [level] = levels.find(([each]) => each === query.get("level")) ?? ["debug" as const];
  const contains = query.get("contains") ?? "";
  const { data, error, reload } = useLive<readonly LogLine[]>(
    `logs ${ownerId} ${level} ${contains}`,
    async (signal) => {
      const filter = { newest: true, level, ...(contains !== "" && { contains }) };
      return (await account.value.client.services.logs(ownerId, filter, { limit: maxLines, signal })).lines;
    },
    { service: ownerId, pollIntervalMs: 2_000, isPaused },
  );
  return (
    <>
      <div class="halves">
        <TextField
          label="Lines that contain"
          type="search"
          value={contains}
          onInput={(value) => setQuery({ contains: value })}
        />
        <SelectField label="Level" value={level} options={levels} onInput={(value) => chooseQuery({ level: value })} />
      </div>
      <Card
        title={`Log, newest ${maxLines} lines`}
        flush
        actions={
          data !== undefined && <Button onClick={() => setPaused(!isPaused)}>{isPaused ? "Follow" : "Pause"}</Button>
        }
      >
        {data === undefined ? (
          <div class="body">{error === undefined ? <Loading /> : <ErrorNotice error={error} onRetry={reload} />}</div>
        ) : data.length === 0 ? (
          <Empty icon="log" title="No line matches" />
        ) : (
          <div class="log" role="log" aria-label="Lines" tabIndex={0}>
            {data.toReversed().map((line, index) => (
              <div class="line" key={`${line.time} ${index}`}>
                <time dateTime={line.time} title={new Date(line.time).toUTCString()}>
                  {new Date(line.time).toLocaleTimeString("en", { hourCycle: "h23" })}
                </time>
                <span data-level={line.level}>{line.level}</span>
                <span class="text">{visibleText(line.message)}</span>
              </div>
            ))}
          </div>
        )}
      </Card>
    </>
  );
}
