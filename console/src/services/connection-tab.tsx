import { useState } from "preact/hooks";
import type { Connection } from "@holdfast/sdk/responses.ts";
import { useLive } from "../live/use-live.ts";
import { SelectField } from "../parts/field.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Card, Copyable, Facts, Loading, Secret } from "../parts/parts.tsx";
import { account, refusalOf } from "../session/account.ts";
import type { TabProps } from "./tab-props.ts";
import { consoleEngineOf } from "./engines/engines.ts";

/** Host, user, password, certificate authority and programs that connect. */
export function ConnectionTab({ service }: TabProps) {
  const [choice, setChoice] = useState("URI");
  const { data, error, reload } = useLive<Connection>(
    `connection ${service.id}`,
    (signal) => account.value.client.services.connection(service.id, { signal }),
    { service: service.id },
  );
  if (data === undefined)
    return error === undefined ? <Loading rows={6} /> : <ErrorNotice error={error} onRetry={reload} />;
  const snippets = consoleEngineOf(service.database_type).snippets(data);
  const snippet = snippets.find(({ title }) => title === choice) ?? snippets[0];
  const reveal = async () => {
    const { password } = await account.value.client.databaseUsers.revealPassword(service.id, data.user);
    return password;
  };
  const refusal = refusalOf("services:secrets");
  return (
    <>
      <Card title="Connect">
        <div class="stack">
          <SelectField
            label="Program"
            value={snippet?.title ?? ""}
            onInput={setChoice}
            options={snippets.map(({ title }) => [title, title])}
          />
          <Copyable text={snippet?.text ?? ""} label="the connection" />
          {snippet?.text.includes("ca.pem") && (
            <p class="quiet small">ca.pem is the certificate authority below, saved where the program runs.</p>
          )}
          <div class="field">
            <span class="label">Password of {data.user}</span>
            {refusal === undefined ? <Secret load={reveal} label="the password" /> : <Notice>{refusal}</Notice>}
          </div>
        </div>
      </Card>
      <Card title="Certificate authority">
        <div class="stack">
          <p class="quiet">Save it as ca.pem: clients verify the certificate of the server with it.</p>
          <Copyable text={data.ca_certificate} label="the certificate authority" />
        </div>
      </Card>
      <Card title="Addresses">
        <Facts
          facts={[
            ["Host", data.host],
            ["Port", data.port],
            ["User", data.user],
            ...(data.database === "" ? [] : [["Database", data.database] as const]),
            ["Host in the private network", data.private_host],
            ["Networks that may connect", service.allowed_cidrs.join(", ") || "none"],
          ]}
        />
      </Card>
    </>
  );
}
