"""Pipelines with Recordgen, to run from the repository; they are not installed.

python -m pipelines.demo                                     scanned digits, end to end
python -m pipelines.samples TASK FOLDER                      only the data of a demo
python -m pipelines.local --data data/ --workdir work/       your data, on this machine
python -m pipelines.vertex --output job.json …               the same on Vertex AI
python -m pipelines.component                                the steps of pipelines on Kubeflow
"""
