"""mem0 as one process: a line of JSON in, a line out. Run by the Python of an environment with `mem0ai`.

Arguments: an OpenAI-compatible embedding endpoint, its model and the number of dimensions. No language model is called,
because texts are added with `infer=False`. mem0 needs vectors; its keyword search needs the extra `fastembed`, whose
table it downloads.
"""

import json
import os
import sys
import tempfile

folder = tempfile.mkdtemp(prefix="mem0-")
os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder, OPENAI_API_KEY="unused")

from mem0 import Memory  # noqa: E402

url, model, dimensions = sys.argv[1:]
memory = Memory.from_config(
    {
        "embedder": {
            "provider": "openai",
            "config": {"model": model, "openai_base_url": url, "api_key": "unused"},
        },
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": f"{folder}/qdrant", "embedding_model_dims": int(dimensions), "on_disk": False},
        },
        "history_db_path": f"{folder}/history.sqlite3",
    }
)
for line in sys.stdin:
    user, call, values = json.loads(line)
    found = []
    if call == "add":
        for role, text, session in values:
            message = [{"role": role, "content": text}]
            memory.add(message, user_id=user, infer=False, metadata={"session": session})
    elif call == "search":
        question, top_k = values
        results = memory.search(question, filters={"user_id": user}, top_k=top_k, threshold=0.0)["results"]
        found = [[one["id"], one["memory"], one["metadata"]["session"]] for one in results]
    else:
        memory.delete(values)
    print(json.dumps(found), flush=True)
