import { labelOf } from "../format.ts";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { TextField } from "../parts/field.tsx";
import { Card, Loading, PageHead } from "../parts/parts.tsx";
import { hrefOf, currentAddress, setQuery } from "../router/location.ts";
import type { GenericOperation } from "./generic-view.ts";
import { withoutPage } from "./own-pages.ts";
import { useOperations } from "./use-document.ts";

/** Everything that the API can do, by kind of resource. */
export function ResourcesPage() {
  const { operations, error } = useOperations();
  const text = currentAddress.value.query.get("text") ?? "";
  const found = (operations ?? []).filter(
    ({ id, title, path, tag }) =>
      !Object.hasOwn(withoutPage, id) && `${title} ${path} ${tag}`.toLowerCase().includes(text.toLowerCase()),
  );
  const groups = Map.groupBy(found, ({ tag }) => tag);
  return (
    <>
      <PageHead
        title="All resources"
        about="Everything that the API of this installation can do, with a form for each"
      />
      <TextField label="Find" type="search" value={text} onInput={(value) => setQuery({ text: value })} />
      <ErrorNotice error={error} />
      {operations === undefined ? (
        <Loading rows={8} />
      ) : groups.size === 0 ? (
        <Empty icon="search" title="Nothing matches" />
      ) : (
        <div class="masonry">
          {[...groups].map(([tag, members]) => (
            <Card key={tag} title={titleOf(tag)}>
              <ul class="operations">
                {members.map((operation) => (
                  <li key={operation.id}>
                    <Verb operation={operation} />
                    <a href={hrefOf("resources", operation.id)}>{operation.title}</a>
                  </li>
                ))}
              </ul>
            </Card>
          ))}
        </div>
      )}
    </>
  );
}

/** "ManagedService" is "Managed service". */
function titleOf(tag: string): string {
  return labelOf(
    tag.replaceAll(/([a-z])([A-Z])/g, (_, before: string, after: string) => `${before} ${after.toLowerCase()}`),
  );
}

export function Verb({ operation: { verb } }: { readonly operation: GenericOperation }) {
  return <span class="tag mono">{verb}</span>;
}
