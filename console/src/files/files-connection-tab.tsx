import { useState } from "preact/hooks";
import type { FilesConnection } from "@holdfast/sdk/responses.ts";
import { useLive } from "../live/use-live.ts";
import { SelectField } from "../parts/field.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Card, Copyable, Facts, Loading } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";
import type { TabProps } from "../services/tab-props.ts";
import { account } from "../session/account.ts";
import { filesSnippets } from "./files-view.ts";

/** Endpoint, bucket and certificate authority of a files service, and clients that connect. */
export function FilesConnectionTab({ service }: TabProps) {
  const [choice, setChoice] = useState("");
  const { data, error, reload } = useLive<FilesConnection>(
    `files connection ${service.id}`,
    (signal) => account.value.client.files.connection(service.id, { signal }),
    { service: service.id },
  );
  if (data === undefined)
    return error === undefined ? <Loading rows={6} /> : <ErrorNotice error={error} onRetry={reload} />;
  const snippets = filesSnippets(data);
  const snippet = snippets.find(({ title }) => title === choice) ?? snippets[0];
  return (
    <>
      <Card title="Connect">
        <div class="stack">
          <SelectField
            label="Client"
            value={snippet?.title ?? ""}
            onInput={setChoice}
            options={snippets.map(({ title }) => [title, title])}
          />
          <Copyable text={snippet?.text ?? ""} label="the connection" />
          <p class="quiet">
            The client also needs <a href={hrefOf("files", service.id, "keys")}>a key</a>.
          </p>
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
            ["Endpoint", data.endpoint],
            ["Bucket", data.bucket],
            ["Region", data.region],
            ["Endpoint in the private network", data.private_endpoint],
            ["Networks that may connect", service.allowed_cidrs.join(", ") || "none"],
          ]}
        />
      </Card>
    </>
  );
}
