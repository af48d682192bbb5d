#!/usr/bin/env python3
"""A fetcher for amble: takes leases, makes their requests, reports the results.

Usage: AMBLE_SERVER_FETCH_TOKEN=... fetcher.py http://127.0.0.1:8377 NAME [IDLE_SECONDS]
It ends when there was no lease for IDLE_SECONDS (default: never). Needs the package requests.
"""
import base64
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import requests

API, NAME = sys.argv[1] + "/api/v1", sys.argv[2]
IDLE = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
AT_ONCE = 8
CONNECT, READ = 10, 10  # seconds: for a connection, and for the header or a piece of the body
LEAST = CONNECT + 2 * READ  # a request begins only if so much of its lease is left

api = requests.Session()
api.headers["Authorization"] = "Bearer " + os.environ.get("AMBLE_SERVER_FETCH_TOKEN", "")


def take():
    """Returns the next leases; waits for up to 20 seconds if none is due."""
    body = {"fetcher": NAME, "n": AT_ONCE, "wait": min(20, IDLE), "seconds": 60}
    answer = api.post(API + "/leases", json=body, timeout=60)
    if answer.status_code == 503:  # the crawl is starting or ending
        time.sleep(1)
        return []
    answer.raise_for_status()
    leases = [json.loads(line) for line in answer.iter_lines() if line]
    for lease in leases:
        lease["ends"] = time.monotonic() + lease["seconds"]
    return leases


def fetch(lease):
    """Makes the request of a lease, and returns its report."""
    report = {"id": lease["id"], "fetcher": NAME}
    started = time.monotonic()
    if lease["ends"] - started < LEAST:
        report["not_done"] = True
        return report
    try:
        with requests.get(lease["url"], headers=lease["headers"], timeout=(CONNECT, READ), allow_redirects=False,
                          stream=True) as page:
            body = b""
            for piece in page.iter_content(65536):
                body += piece
                late = lease["ends"] - time.monotonic() < READ
                if len(body) >= min(lease["max_bytes"], 4 << 20) or late:
                    break
        report.update(status=page.status_code, headers=dict(page.headers), body_base64=base64.b64encode(body).decode(),
                      captures=[{"url": lease["url"], "request_headers": dict(page.request.headers)}])
    except requests.Timeout:
        report["error"] = "header_timeout"
    except requests.RequestException:
        report["error"] = "reset"
    report["took"] = time.monotonic() - started
    return report


def main():
    last = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while time.monotonic() - last < IDLE:
            try:
                leases = take()
            except requests.ConnectionError:
                return  # the crawl has ended
            for done in as_completed([pool.submit(fetch, lease) for lease in leases]):
                report = done.result()
                last = time.monotonic()
                answer = api.post(API + "/leases/" + report["id"], json=report, timeout=60)
                print(answer.status_code, report.get("status", report.get("error", "not done")), report["id"], flush=True)


if __name__ == "__main__":
    main()
