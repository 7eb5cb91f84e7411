# SPDX-License-Identifier: Apache-2.0
"""Whether answers have the shapes that docs/openapi.json tells: a small JSON Schema checker (what the file uses,
nothing else). harness.Server asks it of every answer that a test gets."""
import json
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(ROOT, "docs", "openapi.json"), encoding="utf-8") as f:
    DESCRIPTION = json.load(f)
BYTES_MAX = 1 << 20  # larger answers are no different, only slower to look at
KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
         "null": type(None)}


def problems(value, schema, at="$"):
    """What of a value is not as the schema says."""
    if "$ref" in schema:
        schema = DESCRIPTION["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if "oneOf" in schema:
        tried = [problems(value, one, at) for one in schema["oneOf"]]
        return min(tried, key=len)
    kinds = schema.get("type", list(KINDS))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, KINDS[k]) and (k == "boolean" or not isinstance(value, bool)) for k in kinds):
        return [f"{at}: {value!r} is no {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{at}: {len(value)} items")
        for i, item in enumerate(value):
            found += problems(item, schema.get("items", {}), f"{at}[{i}]")
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            if name in known:
                found += problems(item, known[name], f"{at}.{name}")
            elif more is False:
                found.append(f"{at}: {name} is not described")
            elif isinstance(more, dict):
                found += problems(item, more, f"{at}.{name}")
    return found[:10]


def problems_of(method, path, parameters, status, kind, body):
    """What of an answer is not as told: of JSON of paths that are described, and of errors."""
    if status == 200 and parameters.get("format", "json") not in ("json", "table"):
        return []  # of another tool
    operation = DESCRIPTION["paths"].get(path, {}).get(method.lower())
    if not operation or not kind.startswith("application/json") or len(body) > BYTES_MAX:
        return []
    if status >= 400:
        return problems(json.loads(body), {"$ref": "#/components/schemas/Error"})
    told = operation["responses"]["200"]["content"].get("application/json")
    return problems(json.loads(body), told["schema"]) if told else [f"{path}: JSON is not told of"]
