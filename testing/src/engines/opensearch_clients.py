"""Calls an OpenSearch as applications in Python do, by opensearch-py, and prints the results as one line of JSON."""

import json
import os

from opensearchpy import OpenSearch, helpers
from opensearchpy.exceptions import TransportError

client = OpenSearch(
    os.environ["OPENSEARCH_URL"],
    http_auth=("app_user", os.environ["OPENSEARCH_PASSWORD"]),
    ca_certs=os.environ["OPENSEARCH_CA"],
)


def status_of(call):
    """Status of the refusal of a call; none if it succeeds."""
    try:
        call()
    except TransportError as error:
        return error.status_code
    return None


index = "python"
client.indices.create(
    index=index,
    body={
        "settings": {"analysis": {"analyzer": {"tags": {"tokenizer": "pattern", "filter": ["lowercase"]}}}},
        "mappings": {"properties": {"tags": {"type": "text", "analyzer": "tags"}, "weights": {"type": "rank_features"}}},
    },
)
documents = ({"_index": index, "_id": n, "n": n, "tags": f"Odd-{n % 3}", "weights": {"size": n + 1}} for n in range(300))
bulk, _ = helpers.bulk(client, documents, refresh=True)
scanned = sum(1 for _ in helpers.scan(client, index=index, size=50))
tagged = client.search(index=index, body={"query": {"match": {"tags": {"query": "odd 2", "operator": "and"}}}, "size": 0})
heavy = client.search(index=index, body={"query": {"rank_feature": {"field": "weights.size", "linear": {}}}, "size": 3})
summed = client.search(
    index=index,
    body={"size": 0, "aggs": {"even": {"sum": {"script": {"source": "doc['n'].value % 2 == 0 ? 1 : 0"}}}}},
)
client.search_pipeline.put(id="small", body={"request_processors": [{"filter_query": {"query": {"range": {"n": {"lt": 9}}}}}]})
piped = client.count(index=index), client.search(index=index, params={"search_pipeline": "small"})

print(
    json.dumps(
        {
            "bulk": bulk,
            "scanned": scanned,
            "tagged": tagged["hits"]["total"]["value"],
            "heavy": [hit["_id"] for hit in heavy["hits"]["hits"]],
            "even": summed["aggregations"]["even"]["value"],
            "piped": [piped[0]["count"], piped[1]["hits"]["total"]["value"]],
            "delete_all": status_of(lambda: client.indices.delete(index="*")),
            "settings": status_of(lambda: client.cluster.put_settings(body={"persistent": {"cluster.max_shards_per_node": 7}})),
            "delete": status_of(lambda: client.indices.delete(index=index)),
        }
    )
)
