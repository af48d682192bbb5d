import os

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Pages(CrawlSpider):
    name = "pages"
    allowed_domains = ["check.test"]
    start_urls = open(os.environ["SEEDS"]).read().split()
    rules = [Rule(LinkExtractor(), callback="page", follow=True)]

    def page(self, response):
        yield {"url": response.url}
