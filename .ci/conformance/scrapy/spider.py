import os

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Pages(CrawlSpider):
    name = "pages"
    allowed_domains = ["test"]
    start_urls = [os.environ["SEED"]]
    rules = [Rule(LinkExtractor(), callback="page", follow=True)]

    def page(self, response):
        yield {"url": response.url}
